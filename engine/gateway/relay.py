"""A stream on its way to its client, from a replica or from several in turn: whole events, as soon as they are whole.

Only the part of an event that has not ended yet is kept back, so that a replica which dies in the middle
leaves no torn event behind, and the error that ends the stream can be read.
"""

from collections.abc import Callable
from enum import StrEnum

from aiohttp import web

from engine.gateway.continuation import DONE, Continuation, CutOff
from engine.gateway.replies import Failure, passed_on
from engine.gateway.upstream import BROKEN, Opened, Silent, Stuck

END = b"\n\n"
MAX_EVENT_BYTES = 2**20  # one that does not end within this is passed on as it is ...
MAX_READ_BYTES = 2**26  # ... but where events are read: the first may tell a prompt of a million token ids


class Broke(StrEnum):
    """How a stream ended before it was complete."""

    LOST = "lost"  # the connection broke, or ended too early
    SILENT = "silent"  # its replica answers nothing any more
    STUCK = "stuck"  # its replica takes nothing new and sends nothing
    FAILED = "failed"  # its replica says that it failed
    CUT_OFF = "cut_off"  # its replica leaves and could not wait for the end


class Events:
    """Cuts a byte stream after its last whole event."""

    def __init__(self, most: int = MAX_EVENT_BYTES) -> None:
        self._most = most
        self._rest = b""
        self.done = False  # the stream has said that it is complete

    def feed(self, chunk: bytes) -> bytes:
        """The whole events that ``chunk`` completes; what is left waits for the next."""
        text = self._rest + chunk
        cut = text.rfind(END) + len(END) if END in text else 0
        if cut == 0 and len(text) > self._most:
            cut = len(text)
        whole, self._rest = text[:cut], text[cut:]
        self.done = self.done or whole.startswith(DONE) or END + DONE in whole  # an answer may speak of it
        return whole

    def end(self) -> bytes:
        """What is left at an orderly end."""
        rest, self._rest = self._rest, b""
        return rest


class Relay:
    """One answer; with a ``continuation`` another replica can go on where one broke off.

    A client that goes away ends ``carry`` with ConnectionResetError or a cancellation.
    """

    def __init__(self, request: web.Request, continuation: Continuation | None, on_first: Callable[[], None]) -> None:
        self._request = request
        self._on_first = on_first
        self._response: web.StreamResponse | None = None
        self.continuation = continuation

    async def carry(self, opened: Opened, replica: str) -> Broke | None:
        """Pass on what comes from this replica; None once the answer is complete, else how it broke off."""
        response = await self._begun(opened, replica)
        events = Events(MAX_READ_BYTES if self.continuation else MAX_EVENT_BYTES)
        while True:
            try:
                chunk = await opened.next()
            except BROKEN as broken:
                return None if events.done else _how(broken)
            if not chunk:
                break
            shown, broke = self._shown(events.feed(chunk))
            if shown:
                await response.write(shown)
            if broke is not None:
                return broke
        if self.continuation is not None and not (events.done or self.continuation.refused):
            return Broke.LOST
        await response.write(events.end())
        return None

    async def end(self, last: bytes = b"") -> web.StreamResponse:
        """Nothing more comes, but for this."""
        assert self._response is not None, "it has not begun"
        if last:
            await self._response.write(last)
        await self._response.write_eof()
        return self._response

    async def _begun(self, opened: Opened, replica: str) -> web.StreamResponse:
        if self._response is None:
            self._response = web.StreamResponse(status=opened.status, headers=passed_on(opened.headers, replica))
            await self._response.prepare(self._request)
            self._on_first()
        return self._response

    def _shown(self, whole: bytes) -> tuple[bytes, Broke | None]:
        """What the client sees of these events, up to the one that says that the replica goes no further."""
        if self.continuation is None or not whole:
            return whole, None
        shown, broke = b"", None
        try:
            for event in whole.removesuffix(END).split(END):
                if told := self.continuation.take(event):
                    shown += told + END
        except CutOff as cut:
            broke = Broke.FAILED if cut.failed else Broke.CUT_OFF
        return shown, broke


def _how(broken: Exception) -> Broke:
    if isinstance(broken, Silent):
        return Broke.SILENT
    return Broke.STUCK if isinstance(broken, Stuck) else Broke.LOST


def lost_midway(replica: str, why: str = "") -> Failure:
    """The error that ends a stream whose replica went away."""
    return Failure(
        502,
        "stream_broken",
        f"replica {replica} was lost in the middle of this answer{why and f' ({why})'}; "
        "what came so far is valid, send the request again",
        kind="server_error",
    )
