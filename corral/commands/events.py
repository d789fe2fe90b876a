"""``corral events``: what was seen."""

import click
import msgspec

from corral.ask import ask, find_gpu, json_option, url_option
from vocab.events import Event


@click.command(help="List events, newest last.")
@url_option
@json_option
@click.option("--gpu", help="Only this GPU: UUID, part of it, or index.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most this many.")
def command(url: str, as_json: bool, gpu: str | None, limit: int) -> None:
    """Print events, one a line (with --json as JSON Lines)."""
    chosen = find_gpu(url, gpu) if gpu else None
    for event in ask(url, "GET", "/api/v1/events", list[Event], gpu=chosen, limit=limit):
        click.echo(msgspec.json.encode(event) if as_json else line(event))


def line(event: Event) -> str:
    """One event for people."""
    where = event.gpu[:12] if event.gpu else event.pci or event.node
    times = f" ×{event.count}" if event.count > 1 else ""
    marks = "".join(f" [{mark}]" for mark, on in (("injected", event.injected), ("drill", event.drill)) if on)
    return (
        f"{event.at or '-':27} {event.severity.value:8} {event.code:22} {where:14} "
        f"advice {event.recovery.value}{times}{marks}  {event.text}"
    )
