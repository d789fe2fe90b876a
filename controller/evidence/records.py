"""What agents keep, asked of them with the token that they ask for: recordings, and the evidence that they took."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from vocab.errors import ConfigError, Unreachable
from vocab.messages import EvidenceList
from wire.server import read_token

MOST_BYTES = 64 * 2**20  # of a recording (minutes of an 8-GPU board), or of a piece of evidence
READ_S = 60.0
TAKE_S = 180.0  # a bug report has two minutes, and may wait for another one
MOST_LIST = 2**16


class AgentRecords:
    """``token``: where the agents' own token lies, if they ask for one."""

    def __init__(self, tls: ssl.SSLContext | None = None, token: Path | None = None) -> None:
        self._tls = tls
        self._token = token

    async def recording(self, address: str) -> bytes:
        """What an agent has recorded of late. Raises Unreachable, in words for people."""
        return await self._get("GET", address, "recording", MOST_BYTES, READ_S)

    async def evidence(self, address: str, order: str) -> EvidenceList:
        """What it took for an order. Raises Unreachable."""
        return _list(await self._get("GET", address, f"evidence/{order}", MOST_LIST, READ_S))

    async def take(self, address: str, order: str) -> EvidenceList:
        """The same; what was not taken is taken now. Raises Unreachable."""
        return _list(await self._get("POST", address, f"evidence/{order}", MOST_LIST, TAKE_S))

    async def piece(self, address: str, order: str, name: str) -> bytes:
        """A piece of that evidence. Raises Unreachable."""
        return await self._get("GET", address, f"evidence/{order}/{name}", MOST_BYTES, READ_S)

    async def _get(self, method: str, address: str, path: str, most: int, within_s: float) -> bytes:
        if not address:
            raise Unreachable("its address is not known")
        found = bytearray()
        try:
            async with asyncio.timeout(within_s), self._asked(method, address, path) as answer:
                if answer.status != 200:
                    raise Unreachable(f"it answered {answer.status}")
                async for chunk in answer.content.iter_chunked(2**16):
                    found += chunk
                    if len(found) > most:
                        raise Unreachable(f"it is larger than {most} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError, ConfigError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        return bytes(found)

    @asynccontextmanager
    async def _asked(self, method: str, address: str, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
        token = read_token(self._token)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self._tls if self._tls is not None else True)
        url = f"{address.rstrip('/')}/api/v1/{path}"
        async with (
            aiohttp.ClientSession(connector=connector, headers=headers) as session,
            session.request(method, url, allow_redirects=False) as answer,
        ):
            yield answer


def _list(raw: bytes) -> EvidenceList:
    try:
        return msgspec.json.decode(raw, type=EvidenceList)
    except msgspec.DecodeError as error:
        raise Unreachable(f"its answer is none: {error}") from error
