"""Where a test finds DCGM: the stand-in of a release with a small host engine, or what the environment names."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.fakes.dcgm.host import FakeHost

HERE = Path(__file__).parent
BINDINGS, HOST = "DCGM_BINDINGS", "DCGM_HOST"
PORT = 5555  # of a host engine, where DCGM_HOST names none
LIMIT_S = 60


class Place(msgspec.Struct, frozen=True):
    """Bindings and the address of an engine; ``host`` is None where the engine is a real one."""

    bindings: Path
    address: str
    host: FakeHost | None = None

    def inject(self, gpu: int, field: int, value: float) -> None:
        """Put a value into the engine as its own test function does."""
        subprocess.run(
            [sys.executable, "-m", "tests.dcgm.inject", str(self.bindings), self.address, str(gpu), str(field),
             str(value)],
            check=True,
            timeout=LIMIT_S,
        )  # fmt: skip


@contextmanager
def stand_in(major: int = 4, socket_path: Path | None = None) -> Iterator[Place]:
    """A small host engine of that release, running."""
    host = FakeHost({3: "3.3.9", 4: "4.6.0"}[major], socket_path)
    host.start()
    try:
        yield Place(HERE / f"v{major}", host.address, host)
    finally:
        host.stop()


def is_named() -> bool:
    """Whether the environment names a real engine: DCGM_BINDINGS, the folder of dcgm_agent.py, and DCGM_HOST."""
    return bool(os.environ.get(BINDINGS) and os.environ.get(HOST))


def real() -> Place:
    """The bindings and the engine that the environment names. Raises KeyError without them."""
    bindings, address = os.environ[BINDINGS], os.environ[HOST]
    return Place(Path(bindings), address if ":" in address else f"{address}:{PORT}")
