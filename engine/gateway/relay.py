"""A stream on its way from a replica to a client: whole events, as soon as they are whole.

Only the part of an event that has not ended yet is kept back, so that a replica which dies in the middle
leaves no torn event behind, and the error that ends the stream can be read.
"""

from collections.abc import Callable

from aiohttp import web

from engine.gateway.replies import Failure, last_event, passed_on
from engine.gateway.upstream import BROKEN, Opened

END = b"\n\n"
DONE = b"data: [DONE]"
MAX_EVENT_BYTES = 2**20  # one that does not end within this is passed on as it is


class Events:
    """Cuts a byte stream after its last whole event."""

    def __init__(self) -> None:
        self._rest = b""
        self.done = False  # the stream has said that it is complete

    def feed(self, chunk: bytes) -> bytes:
        """The whole events that ``chunk`` completes; what is left waits for the next."""
        text = self._rest + chunk
        cut = text.rfind(END) + len(END) if END in text else 0
        if cut == 0 and len(text) > MAX_EVENT_BYTES:
            cut = len(text)
        whole, self._rest = text[:cut], text[cut:]
        self.done = self.done or DONE in whole
        return whole

    def end(self) -> bytes:
        """What is left at an orderly end."""
        rest, self._rest = self._rest, b""
        return rest


async def relay(
    request: web.Request, opened: Opened, replica: str, on_first: Callable[[], None]
) -> tuple[web.StreamResponse, bool]:
    """Pass the stream on; the answer, and whether it broke before it was complete.

    A client that goes away ends this with ConnectionResetError or a cancellation; the caller closes ``opened``.
    """
    response = web.StreamResponse(status=opened.status, headers=passed_on(opened.headers, replica))
    await response.prepare(request)
    on_first()
    events, broken = Events(), False
    while True:
        try:
            chunk = await opened.next()
        except BROKEN:
            broken = not events.done
            break
        if not chunk:
            await response.write(events.end())
            break
        if whole := events.feed(chunk):
            await response.write(whole)
    if broken:
        await response.write(last_event(lost_midway(replica)))
    await response.write_eof()
    return response, broken


def lost_midway(replica: str) -> Failure:
    """The error that ends a stream whose replica went away."""
    return Failure(
        502,
        "stream_broken",
        f"replica {replica} was lost in the middle of this answer; what came so far is valid, send the request again",
        kind="server_error",
    )
