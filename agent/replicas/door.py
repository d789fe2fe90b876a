"""The HTTP door of an engine: is it ready, is it healthy, stop admitting, admit again, drain and exit."""

import aiohttp
import msgspec

CONNECT_S = 1.0  # it is on this machine
ORDER_S = 2.0
PROBE_S = 10.0  # a saturated engine answers late, and shorter limits restarted healthy ones; slow is not dead


class Answer(msgspec.Struct, frozen=True):
    """What came back: an HTTP status, or why none did (``refused``, ``timeout`` or ``broken``)."""

    status: int | None = None
    error: str | None = None
    body: bytes = b""

    @property
    def reason(self) -> str:
        """Why it says no, if it says so."""
        try:
            return msgspec.json.decode(self.body, type=_Body).reason
        except msgspec.DecodeError:
            return ""

    @property
    def taken(self) -> bool:
        """Whether an order was accepted."""
        return self.status is not None and self.status < 300


class _Body(msgspec.Struct):
    reason: str = ""


class Door:
    """Asks engines over HTTP; use as an async context manager. Nothing here raises for an engine's silence."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Door":
        # A new connection each time: one kept alive would turn an engine's end into an answer that is missing.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def look(self, url: str) -> Answer:
        """What it says of its readiness (``reason`` says why not) or health there."""
        return await self._ask("GET", url, PROBE_S)

    async def metrics(self, url: str) -> str | None:
        """The text of its /metrics; None if it gives none."""
        answer = await self._ask("GET", f"{url}/metrics", PROBE_S)
        return answer.body.decode(errors="replace") if answer.status == 200 else None

    async def close(self, url: str, reason: str) -> Answer:
        """Stop admitting; go on with what is open."""
        return await self._ask("POST", f"{url}/drain", ORDER_S, {"exit": False, "reason": reason})

    async def reopen(self, url: str) -> Answer:
        """Admit again."""
        return await self._ask("DELETE", f"{url}/drain", ORDER_S)

    async def drain(self, url: str, ttl_s: float) -> Answer:
        """Stop admitting, end what is open within ``ttl_s``, exit."""
        return await self._ask("POST", f"{url}/drain", ORDER_S, {"exit": True, "ttl_s": ttl_s, "reason": "draining"})

    async def _ask(self, method: str, url: str, seconds: float, body: object = None) -> Answer:
        assert self._session is not None, "use Door as an async context manager"
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_S)
        try:
            async with self._session.request(
                method,
                url,
                data=None if body is None else msgspec.json.encode(body),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            ) as response:
                return Answer(status=response.status, body=await response.read())
        except aiohttp.ClientConnectorError:
            return Answer(error="refused")
        except TimeoutError:
            return Answer(error="timeout")
        except (aiohttp.ClientError, OSError):
            return Answer(error="broken")
