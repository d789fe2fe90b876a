"""``python -m tests.fuzz NAME [libFuzzer options]``: feed one target for ever, or ``-max_total_time`` seconds.

What breaks it is left in build/fuzz; ``python -m tests.fuzz NAME FILE`` runs that again.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

from tests.fuzz.target import Target

FOUND = Path("build/fuzz")
NAMES = ("batch", "beat", "gguf", "kernel", "recording", "roothelper", "scan")
WATCHED = ("agent", "controller", "corral", "vocab", "engine.files.gguf_file")  # their branches tell what is new
USUAL = ("-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")


def main(name: str, options: list[str]) -> None:
    """Fuzz ``tests/fuzz/NAME.py``."""
    with atheris.instrument_imports(include=list(WATCHED)):
        target: Target = importlib.import_module(f"tests.fuzz.{name}").TARGET
    FOUND.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds()):
            (Path(corpus) / str(number)).write_bytes(seed)
        where = [] if any(not option.startswith("-") for option in options) else [corpus]
        limits = (f"-max_len={target.longest}", f"-artifact_prefix={FOUND}/{name}-")
        change = {"custom_mutator": mutator(target.mutate)} if target.mutate else {}
        atheris.Setup([name, *USUAL, *limits, *options, *where], target.one, **change)
        atheris.Fuzz()


def mutator(mutate: Callable[[bytes, int, int], bytes]) -> Callable[[bytes, int, int], bytes]:
    """Every fourth change is libFuzzer's own."""

    def change(data: bytes, most: int, seed: int) -> bytes:
        return atheris.Mutate(data, len(data)) if seed % 4 == 0 else mutate(bytes(data), most, seed)

    return change


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m tests.fuzz {{{','.join(NAMES)}}} [libFuzzer options]")
    main(sys.argv[1], sys.argv[2:])
