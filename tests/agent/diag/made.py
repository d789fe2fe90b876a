"""A ground for active checks: GPUs, who keeps and uses them, and what they would read."""

import sys
from collections.abc import Mapping
from pathlib import Path

from agent.diag.bench import Bench
from agent.diag.leave import Standing
from agent.diag.pace import Tokens
from agent.sources.dcgm.sight import DcgmSettings
from vocab.diag import AnyTold, Checked
from vocab.observations import Check, GpuIdentity, GpuSample
from vocab.readings import Readings

FAKE = Path(__file__).parents[2] / "fakes" / "diag.py"
FIRST, SECOND = "GPU-aaaa", "GPU-bbbb"
H100 = "NVIDIA H100 80GB HBM3"


def program(way: str = "good") -> tuple[str, ...]:
    return (sys.executable, str(FAKE), "--as", way)


def sample(gpu: str = FIRST, error: str | None = None, **readings) -> GpuSample:
    usual = {
        "ecc_uncorrectable": 0, "remap_pending": 0, "remap_failed": 0, "fabric_state": 3, "pcie_width": 16,
        "pcie_width_max": 16, "pcie_generation_max": 5, "temperature_c": 40.0, "slowdown_c": 89.0,
    }  # fmt: skip
    told = None if error else Readings(**(usual | readings))
    return GpuSample(at=100.0, node="n1", gpu=gpu, readings=told, error=error)


class Ground:
    """Everything is well until a test changes a field."""

    node = "n1"

    def __init__(self) -> None:
        self.samples = {gpu: sample(gpu) for gpu in (FIRST, SECOND)}
        self.kept = {FIRST, SECOND}
        self.users: dict[str, tuple[str, ...] | None] = {FIRST: (), SECOND: ()}
        self.serving: tuple[str, ...] = ()
        self.faults: dict[str, tuple[str, ...]] = {}
        self.device = "cpu"
        self.dcgm: DcgmSettings | None = None
        self.judged: list[Check] = []
        self.counted: list[Mapping[str, Tokens]] = []

    def gpus(self) -> tuple[GpuIdentity, ...]:
        return tuple(
            GpuIdentity(uuid=gpu, index=n, pci=f"0000:{n:02d}:00", name=H100) for n, gpu in enumerate(self.samples)
        )

    def sample(self, gpu: str) -> GpuSample | None:
        return self.samples.get(gpu)

    def standing(self) -> Standing:
        return Standing(kept=frozenset(self.kept), users=self.users, serving=self.serving)

    def bench(self, gpu: str) -> Bench:
        return Bench(device=self.device, faults=self.faults.get(gpu, ()), dcgm=self.dcgm)

    async def tokens(self) -> Mapping[str, Tokens]:
        return self.counted.pop(0) if self.counted else {}

    def take(self, observation: Check) -> None:
        self.judged.append(observation)


class Heard:
    """Who asked: keeps all that is told."""

    def __init__(self) -> None:
        self.told: list[AnyTold] = []

    async def __call__(self, told: AnyTold) -> None:
        self.told.append(told)

    def results(self, gpu: str | None = FIRST) -> dict[str, str]:
        return {
            told.check.check: told.check.result
            for told in self.told
            if isinstance(told, Checked) and told.check.gpu == gpu
        }
