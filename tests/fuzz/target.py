"""What a fuzz target is: a reader of bytes that nobody vouches for, and the inputs to begin with."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parents[1] / "data"


class Target(NamedTuple):
    """``one`` takes any bytes: it returns, or what it raises is a bug.

    ``longest``: bytes of an input, few enough to be quick. ``mutate``: (bytes, most bytes, random number) to other
    bytes of the same form, taking turns with changes of single bytes.
    """

    one: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    longest: int = 4096
    mutate: Callable[[bytes, int, int], bytes] | None = None


def kernel_lines() -> list[str]:
    """The samples of kernel lines, as they were logged."""
    return [sample["text"] for sample in json.loads((DATA / "kernel_lines.json").read_text())]
