"""The flags of the fake replica: the engine's that it needs, and its own."""

import argparse
from pathlib import Path

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What it was started with."""

    replica: str
    listen: str
    beat: Path
    served_name: str = "fake"
    drain_s: float = 120.0
    load_s: float = 0.0  # seconds until it is ready
    rate: float = 200.0  # tokens a second of each stream
    exit_code: int | None = None  # end at once with this code, as a broken installation does
    deaf: bool = False  # ignore SIGTERM and /drain, as a wedged engine does


def parse() -> Options:
    """The flags of this process; those of the engine that it does not need are ignored."""
    parser = argparse.ArgumentParser(prog="fake-replica")
    parser.add_argument("--replica", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--beat", type=Path, required=True)
    parser.add_argument("--served-name", default="fake")
    for name in ("--drain-s", "--load-s", "--rate"):
        parser.add_argument(name, type=float, default=argparse.SUPPRESS)
    parser.add_argument("--exit-code", type=int)
    parser.add_argument("--deaf", action="store_true")
    known, _ = parser.parse_known_args()
    return Options(**vars(known))
