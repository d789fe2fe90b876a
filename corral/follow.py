"""The controller's stream of lines, followed over broken connections: each line once, from where it broke off."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import click
import msgspec

from corral.ask import tls, token
from vocab.errors import CorralError, InputError, Refused, Unreachable
from vocab.lines import AnyLine
from wire.backoff import delay_s
from wire.client import Client
from wire.sse import read_stream

SILENCE_S = 45.0  # the controller says that it is alive every 15 s
MOST_WAIT_S = 15.0


async def follow(url: str, after: int) -> AsyncIterator[AnyLine]:
    """Every line after this seq, until cancelled. Raises Refused and InputError; what breaks off is gone on with."""
    decoder = msgspec.json.Decoder(AnyLine)
    attempt = 0
    async with Client(url, token=token(), tls=tls(url)) as client:
        while True:
            try:
                async for ident, kind, body in _stream(client, after):
                    attempt = 0
                    after = int(ident) if ident.isdecimal() else after
                    if kind == "gap":
                        click.echo("corral: some lines are missing here: the history was pruned or restored", err=True)
                    else:
                        yield decoder.decode(body)
            except (Refused, InputError):
                raise
            except (CorralError, aiohttp.ClientError, TimeoutError, OSError) as error:
                if attempt == 0:
                    click.echo(f"corral: {url} broke off ({error or type(error).__name__}); going on …", err=True)
            attempt += 1
            await asyncio.sleep(delay_s(attempt, url, most_s=MOST_WAIT_S))


async def _stream(client: Client, after: int) -> AsyncIterator[tuple[str, str, bytes]]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=2.0, sock_read=SILENCE_S)
    headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
    async with client.session.get(f"{client.base}/api/v1/watch", headers=headers, timeout=timeout) as answer:
        if answer.status >= 500:
            raise Unreachable(f"it answered {answer.status}")
        if answer.status >= 400:
            raise Refused(f"{client.base} answered {answer.status}: may this token look? Set CORRAL_TOKEN_FILE")
        async for event in read_stream(answer):
            yield event
