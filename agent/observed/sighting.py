"""One observed replica over time: what it is called, what was last seen of it, and how that is told.

Its name comes from its owner and port, never from a pid: when its owner starts it again it is the same replica in a
new life. Of a life only more becomes known: a GPU that can no longer be read does not take its replica away.
"""

from urllib.parse import urlsplit

import msgspec

from agent.observed.finder import Server
from agent.observed.talk import Word
from vocab.messages import ReplicaStatus, kv_step
from vocab.observations import Member, ReplicaSeen

OK = 200


def name_of(server: Server, node: str) -> str | None:
    """``vllm.service:8000@node-1``; None while its port is not known."""
    port = urlsplit(server.urls[0]).port if server.urls else server.port
    return None if port is None else f"{server.owner.name}:{port}@{node}"


class Sighting:
    """One life of one observed replica."""

    def __init__(self, name: str, node: str, server: Server) -> None:
        self.name = name
        self._node = node
        self.server = server
        self.url: str | None = None  # that answered as a server of OpenAI's API
        self.model: str | None = server.model
        self.word = Word()
        self.was_ready = False
        self._ready = False

    def again(self, server: Server) -> None:
        """The same process, looked at anew."""
        self.server = server

    def named(self, url: str, model: str) -> None:
        """It answered there; "" if it does not tell its models to everybody."""
        self.url, self.model = url, model or self.server.model

    def heard(self, word: Word) -> None:
        """A round of questions."""
        self.word = word
        if word.engine is not None:
            self.server = msgspec.structs.replace(self.server, engine=word.engine)
        if word.health != "timeout":  # slow is not dead, and tells nothing of readiness
            self._ready = word.health == OK
        self.was_ready = self.was_ready or self._ready

    @property
    def phase(self) -> str:
        """Draining once it has closed its port itself; how a slow or failing answer is meant is the judge's part."""
        if not self.was_ready:
            return "starting"
        return "ready" if self.server.urls else "draining"

    @property
    def deployment(self) -> str:
        """The name that its clients call its model by."""
        return self.model or ""

    @property
    def members(self) -> tuple[Member, ...]:
        """The GPUs that its processes hold, in the order of their indices."""
        return tuple(Member(node=self._node, gpu=gpu, rank=rank) for rank, gpu in enumerate(self.server.gpus))

    def status(self) -> ReplicaStatus:
        """As the controller is told."""
        told = self.word.figures
        running, waiting = (told.running or 0, told.waiting or 0) if told else (0, 0)
        serves = self._ready and self.phase == "ready"
        return ReplicaStatus(
            replica=self.name,
            deployment=self.deployment,
            members=self.members,
            phase=self.phase,
            ready=serves,
            admitting=serves,
            running=running,
            waiting=waiting,
            open_requests=running + waiting,
            kv_ratio=kv_step(told.kv_ratio) if told else None,
            url=self.url or "",
            pid=self.server.process.pid,
            observed=True,
            owner=self.server.owner,
            engine=self.server.engine.name,
            model=self.model or "",
        )

    def seen(self, at: float) -> ReplicaSeen:
        """As the judge gets it."""
        told, answered = self.word.figures, self.url is not None
        seen = ReplicaSeen(
            at=at,
            node=self._node,
            replica=self.name,
            deployment=self.deployment,
            members=self.members,
            pids=self.server.pids,
            phase=self.phase,
            observed=True,
            owner=self.server.owner,
            engine=self.server.engine.name,
            model=self.model,
            ready=self._ready if answered else None,
            health=self.word.health if answered else None,
        )
        if told is None:
            return seen
        return msgspec.structs.replace(
            seen,
            running=told.running,
            waiting=told.waiting,
            step=told.step,
            tokens=told.tokens,
            kv_ratio=told.kv_ratio,
            requests_ok=told.ok,
            requests_failed=told.failed,
        )

    def gone(self, at: float) -> ReplicaSeen:
        """Its process has ended; how, only its owner knows."""
        return ReplicaSeen(
            at=at,
            node=self._node,
            replica=self.name,
            deployment=self.deployment,
            members=self.members,
            phase="stopped",
            observed=True,
            owner=self.server.owner,
            ready=False,
        )
