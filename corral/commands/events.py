"""``corral events``: what was seen, and what is being seen."""

import asyncio
import contextlib
from collections.abc import Iterable

import click
import msgspec

from corral.ask import GPU_NAMES, ask, find_gpu, json_option, url_option
from corral.local import events_now, gpu_of, instead, local_option, memory, node_now
from corral.terminal import say
from vocab.errors import Unreachable
from vocab.events import Event
from vocab.lines import EventLine

HELP = f"""List events, newest last. --follow goes on as they come, also over restarts of the controller, without a gap.
An event that grows is printed again with its count.

{GPU_NAMES}"""


@click.command(help=HELP)
@url_option
@json_option
@local_option
@click.option("--gpu", help="Only this GPU: UUID, part of it, or index.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most this many.")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on with what comes, until Ctrl-C.")
def command(url: str, gpu: str | None, limit: int, *, as_json: bool, local: bool, follows: bool) -> None:
    """Print events, one a line (with --json as JSON Lines)."""
    if local and follows:
        raise click.UsageError("--follow is the controller's: leave --local out")
    if not local:
        try:
            _of_controller(url, gpu, limit, as_json=as_json, follows=follows)
            return
        except Unreachable as error:
            if follows:
                raise
            instead(error)
    node = node_now()
    chosen = gpu_of(node, gpu) if gpu else None
    found = [event for event in events_now() if chosen in {None, event.gpu}]
    _print(found[-limit:], as_json=as_json)
    if not as_json:
        say(memory(node))


def _of_controller(url: str, gpu: str | None, limit: int, *, as_json: bool, follows: bool) -> None:
    chosen = find_gpu(url, gpu) if gpu else None
    seq = int(ask(url, "GET", "/api/v1/fleet")["seq"]) if follows else 0  # first: what comes meanwhile comes again
    known = ask(url, "GET", "/api/v1/events", list[Event], gpu=chosen, limit=limit)
    _print(known, as_json=as_json)
    if follows:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_follow(url, seq, chosen, {(event.id, event.rev) for event in known}, as_json=as_json))


async def _follow(url: str, after: int, gpu: str | None, known: set[tuple[str, int]], *, as_json: bool) -> None:
    from corral.follow import follow

    async for told in follow(url, after):
        if not isinstance(told, EventLine) or gpu not in {None, told.event.gpu}:
            continue
        if (told.event.id, told.event.rev) not in known:
            _print([told.event], as_json=as_json)
    raise AssertionError("a stream is followed until it is ended")


def _print(events: Iterable[Event], *, as_json: bool) -> None:
    for event in events:
        say(msgspec.json.encode(event) if as_json else line(event))


def line(event: Event) -> str:
    """One event for people, in at most two lines: what and where, and the words of the log."""
    where = event.gpu[:12] if event.gpu else event.pci or event.node
    times = f" ×{event.count}" if event.count > 1 else ""
    marks = "".join(f" [{mark}]" for mark, on in (("injected", event.injected), ("drill", event.drill)) if on)
    stamp = f"{event.at[:19].replace('T', ' ')}Z" if event.at else "-"
    head = f"{stamp:20} {event.severity.value:8} {event.code:20} {where[:14]:14} {event.recovery.value}{times}{marks}"
    return f"{head}\n    {event.text}" if event.text else head
