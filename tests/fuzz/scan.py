"""``corral scan``: files of lines, journals and gzip, mixed, in every mode."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.scan import scan
from tests.fuzz.target import Target, kernel_lines

MODES = ("parse", "json", "text")


def one(data: bytes) -> None:
    """The first byte: the mode, and whether the rest is packed first, as a whole or cut."""
    choice = data[0] if data else 0
    body = data[1:]
    if choice & 4:
        body = gzip.compress(body, mtime=0)[: -1 if choice & 8 else None]
    with TemporaryDirectory() as place:
        path = Path(place) / "log"
        path.write_bytes(body)
        out, err = io.StringIO(), io.StringIO()
        code = scan([str(path)], MODES[choice % 3], None, 1.8e9, 1.7e9 if choice & 16 else None, out, err)
    assert code in (0, 1, 2)
    if choice % 3 != 2:
        for line in out.getvalue().split("\n")[:-1]:
            json.loads(line)
    assert code != 2 or "cannot be read" in err.getvalue()


def seeds() -> Iterator[bytes]:
    """The samples as one file, as a packed one, and as a journal."""
    lines = kernel_lines()
    text = "\n".join(lines).encode()
    journal = [
        {
            "MESSAGE": line if number % 3 else list(line.encode()),
            "_TRANSPORT": "kernel",
            "_HOSTNAME": f"n{number % 2}",
            "__REALTIME_TIMESTAMP": str(1_700_000_000_000_000 + number * 1_000_000),
            "_SOURCE_MONOTONIC_TIMESTAMP": str(number * 1_000_000),
            "SYSLOG_FACILITY": str(number % 2),
        }
        for number, line in enumerate(lines)
    ]
    packed = "\n".join(json.dumps(entry) for entry in journal).encode()
    for choice in (0, 1, 2, 5, 12, 17):
        yield bytes([choice]) + text
        yield bytes([choice]) + packed
    yield from (b"\1" + line.encode() for line in lines[::4])
    yield b"\1" + gzip.compress(text, mtime=0)


TARGET = Target(one, seeds)
