"""One request on its way: where it was tried, who broke on it, and how far its answer has come."""

import msgspec

from engine.gateway.ask import Ask
from engine.gateway.continuation import continuation_of
from engine.gateway.relay import Broke, Relay
from engine.gateway.replies import Failure

DEATHS = 2  # a request that two replicas broke on may be what broke them: it is never sent a third time


class Broken(msgspec.Struct, frozen=True):
    """Where a stream broke off, how, and when; ``model``: whose replicas can go on with it."""

    replica: str
    how: Broke
    at: float
    model: str


class Journey:
    """What is known of one request on its way."""

    def __init__(self, ask: Ask, began: float) -> None:
        self.ask = ask
        self.began = began
        self.continuation = continuation_of(ask)
        self.relay: Relay | None = None  # once the answer has begun to stream
        self.broke: Broken | None = None  # while it has to go on elsewhere
        self.resumes = 0  # times that it went on elsewhere
        self.tried: set[str] = set()  # replicas that would not take it, since something last changed
        self.died: list[str] = []  # replicas that broke on it, one entry a time
        self.held_s = 0.0

    def failure(self) -> Failure:
        """Two replicas broke on it, or one did and there is no other."""
        names = " and ".join(dict.fromkeys(self.died))
        if len(self.died) < DEATHS:
            message = f"replica {names} failed while it worked on this request, and no other takes requests now"
            return Failure(502, "replica_failed", message, kind="server_error")
        message = f"replicas {names} failed while they worked on this request; it is not sent a third time"
        return Failure(502, "replicas_failed", message, kind="server_error")
