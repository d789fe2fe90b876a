"""Errors in the form that OpenAI's clients read, and the headers that go on from a replica to a client."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from vocab.errors import CorralError
from wire.server import reply

RETRY_AFTER_S = 2
# Hop by hop (RFC 9110, 7.6.1), or of the body's outer form, which this hop makes anew.
NOT_PASSED_ON = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade",
     "content-length", "date", "server"}
)  # fmt: skip


class Failure(CorralError):
    """A request that ends with an error of the gateway's own. ``code`` is for programs, the message for people."""

    def __init__(
        self, status: int, code: str, message: str, *, kind: str = "unavailable", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.kind = kind
        self.param = param

    @property
    def body(self) -> dict[str, dict[str, str | None]]:
        """The error object."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}

    def reply(self) -> web.Response:
        """The answer to the client; 503 says when to come again."""
        headers = {"Retry-After": str(RETRY_AFTER_S)} if self.status == 503 else {}
        return reply(self.body, self.status, headers)


def last_event(failure: Failure) -> bytes:
    """The event that ends a stream which cannot go on."""
    return b"data: " + msgspec.json.encode(failure.body) + b"\n\n"


def passed_on(headers: Mapping[str, str], replica: str) -> dict[str, str]:
    """A replica's headers as the client gets them, with the replica's name."""
    kept = {name: value for name, value in headers.items() if name.lower() not in NOT_PASSED_ON}
    return {**kept, "x-corral-replica": replica}
