"""What an engine says when it is asked: three GETs, each with a deadline. Its silence is an answer, never an error."""

import asyncio

import aiohttp
import msgspec

from agent.adapters.adapter import Adapter
from agent.adapters.engines import by_metrics
from agent.adapters.figures import Figures, figures

CONNECT_S = 1.0  # it is on this machine
ANSWER_S = 10.0  # a saturated engine answers late; slow is not dead
CHUNK_BYTES = 65_536
MOST_BYTES = 8 * 2**20  # /metrics of an engine with a dozen ranks is below one


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One round of questions. ``health``: a status, ``refused`` or ``timeout``; None elsewhere: not told."""

    health: int | str | None = None
    figures: Figures | None = None
    engine: Adapter | None = None  # as its metrics show it


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: tuple[_Model, ...] = ()


class Talk:
    """Asks engines; use as an async context manager."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Talk":
        # A new connection each time: one kept alive would turn an engine's end into an answer that is missing.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def model(self, url: str) -> str | None:
        """The first model that it lists: "" if it asks for a key first; None if no server of OpenAI's API answers."""
        status, body = await self._get(f"{url}/v1/models")
        if status in {401, 403}:
            return ""
        try:
            models = msgspec.json.decode(body, type=_Models).data if status == 200 else ()
        except msgspec.DecodeError:
            return None
        return models[0].id if models else None

    async def word(self, url: str, engine: Adapter) -> Word:
        """Its health and its figures."""
        (health, _), (status, body) = await asyncio.gather(self._get(url + engine.health), self._get(f"{url}/metrics"))
        if status != 200:
            return Word(health=health)
        text = body.decode(errors="replace")
        told = by_metrics(text)
        engine = told if told.meters.names else engine
        return Word(health=health, figures=figures(text, engine.meters), engine=engine)

    async def _get(self, url: str) -> tuple[int | str, bytes]:
        assert self._session is not None, "use Talk as an async context manager"
        timeout = aiohttp.ClientTimeout(total=ANSWER_S, sock_connect=CONNECT_S)
        try:
            async with self._session.get(url, timeout=timeout, allow_redirects=False) as answer:
                body = bytearray()
                async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                    body += chunk
                    if len(body) > MOST_BYTES:
                        return answer.status, b""  # that is no answer of an engine
                return answer.status, bytes(body)
        except TimeoutError:
            return "timeout", b""
        except (aiohttp.ClientError, OSError):
            return "refused", b""
