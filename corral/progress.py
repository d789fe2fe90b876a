"""How far long work is, on standard error: a line that moves on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

EVERY_S = 10.0  # where nobody looks at it live


@contextmanager
def told() -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function that is told what is done, and how many of how many."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _now_and_then(console)
        return
    with console.status("…") as status:
        yield lambda what, done, of: status.update(f"{what}: {done:,} of {of:,}")


def _now_and_then(console: Console) -> Callable[[str, int, int], None]:
    last, said = 0.0, time.monotonic()

    def tell(what: str, done: int, of: int) -> None:
        nonlocal last, said
        now = time.monotonic()
        if now - max(last, said) >= EVERY_S or (done == of and last):
            last = now
            console.print(f"{what}: {done:,} of {of:,}", soft_wrap=True)

    return tell
