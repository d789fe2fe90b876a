"""The ways in which the fake replica can be told to fail, by POST /control with any of these fields."""

import msgspec


class Misbehaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``fail`` counts for the next ``times`` requests (-1: all).

    503          refuse the request
    500          fail it with an error of the server
    reset        close the connection before any answer
    exit         end the process (os._exit) when a request comes
    hang         take the request and never answer
    die          stream ``after`` tokens, then close the connection in the middle
    exit_midway  stream ``after`` tokens, then end the process
    """

    fail: str = ""
    times: int = -1
    after: int = 3
    rate: float | None = None  # tokens a second from now on
    refuse_s: float | None = None  # close the listening socket for that long
    frozen: bool | None = None  # answer nothing at all, not even /ready
    ready: bool | None = None  # what /ready says, whatever is true

    def spent(self) -> "Misbehaviour":
        """The order after one request met it."""
        if self.times == 1:
            return msgspec.structs.replace(self, fail="", times=-1)
        return msgspec.structs.replace(self, times=max(-1, self.times - 1))
