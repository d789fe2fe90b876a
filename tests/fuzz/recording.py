"""Recordings that others wrote: whatever the lines hold, an exit code of 0 or 2, and JSON on the way."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.replay.run import BAD_INPUT, OK, replay
from tests.fuzz.mutate import documents
from tests.fuzz.target import DATA, Target

MOST_SEED = 8192  # the first lines of a long recording say as much


def one(data: bytes) -> None:
    """The file; played whole."""
    with TemporaryDirectory() as place:
        path = Path(place) / "recording"
        path.write_bytes(data)
        out, err = io.StringIO(), io.StringIO()
        code = replay([path], None, out=out, err=err, as_json=True)
    assert code in (OK, BAD_INPUT)
    assert code == OK or "recording" in err.getvalue()
    for line in out.getvalue().split("\n")[:-1]:
        json.loads(line)


def seeds() -> Iterator[bytes]:
    """The recordings of the tests."""
    for path in sorted((DATA / "recordings").glob("*.jsonl")):
        raw = path.read_bytes()
        yield raw if len(raw) <= MOST_SEED else raw[: raw.rindex(b"\n", 0, MOST_SEED) + 1]


TARGET = Target(one, seeds, MOST_SEED, documents)
