"""The agent's NVML source on a real GPU: what it reads, beside what nvidia-smi says, as a table.

    python tests/gpu/agent_probe.py [--library PATH] [--seconds 12]

Needs an NVIDIA driver; nvidia-smi is compared with where it is there. Without a driver it says that it was not run
and exits with 0. Exit 1: a figure differs by more than it may between two reads, or a GPU was not read.
"""

import argparse
import asyncio
import csv
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402 - the tree is put on the path first

from agent.sources.nvml import NvmlSource  # noqa: E402 - as above
from agent.whole import joined  # noqa: E402 - as above
from vocab.clock import SystemClock  # noqa: E402 - as above
from vocab.observations import AnyObservation, GpuSample, NodeSeen, SourceState  # noqa: E402 - as above
from vocab.readings import Readings  # noqa: E402 - as above

MIB = 2**20
# nvidia-smi's query -> (our reading, how theirs becomes ours, what may lie between two reads)
COMPARED: dict[str, tuple[str, float, float]] = {
    "temperature.gpu": ("temperature_c", 1, 3),
    "temperature.memory": ("memory_temperature_c", 1, 3),
    "power.draw": ("power_w", 1, 40),
    "enforced.power.limit": ("power_limit_w", 1, 1),
    "power.default_limit": ("power_limit_default_w", 1, 1),
    "power.min_limit": ("power_limit_min_w", 1, 1),
    "power.max_limit": ("power_limit_max_w", 1, 1),
    "clocks.sm": ("sm_clock_hz", 1e6, 4e8),
    "clocks.mem": ("memory_clock_hz", 1e6, 1e8),
    "clocks.max.sm": ("sm_clock_max_hz", 1e6, 0),
    "utilization.gpu": ("utilization_ratio", 0.01, 0.3),
    "utilization.memory": ("memory_utilization_ratio", 0.01, 0.3),
    "memory.total": ("memory_total_bytes", MIB, MIB),
    "memory.used": ("memory_used_bytes", MIB, 256 * MIB),
    "memory.reserved": ("memory_reserved_bytes", MIB, 16 * MIB),
    "pcie.link.gen.max": ("pcie_generation_max", 1, 0),
    "pcie.link.width.current": ("pcie_width", 1, 0),
    "pcie.link.width.max": ("pcie_width_max", 1, 0),
    "ecc.errors.corrected.volatile.total": ("ecc_correctable", 1, 0),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrectable", 1, 0),
    "ecc.errors.corrected.aggregate.total": ("ecc_correctable_lifetime", 1, 0),
    "ecc.errors.uncorrected.aggregate.total": ("ecc_uncorrectable_lifetime", 1, 0),
    "retired_pages.single_bit_ecc.count": ("retired_pages_sbe", 1, 0),
    "retired_pages.double_bit.count": ("retired_pages_dbe", 1, 0),
    "fan.speed": ("fan_ratio", 0.01, 0.1),
}
Seen = dict[str, GpuSample]


class Gathered:
    """What the source said: whole samples by UUID, the inventory, and the words of the source."""

    def __init__(self) -> None:
        self.samples: Seen = {}
        self.node: NodeSeen | None = None
        self.said: list[SourceState] = []

    def take(self, observation: AnyObservation) -> None:
        """As the agent's loop would."""
        match observation:
            case GpuSample(gpu=str(gpu)):
                self.samples[gpu] = joined(self.samples.get(gpu), observation)
            case NodeSeen():
                self.node = observation
            case SourceState():
                self.said.append(observation)


async def gather(library: Path | None, seconds: float) -> Gathered:
    """Run the source as the agent does."""
    found = Gathered()
    with tempfile.TemporaryDirectory() as folder:
        source = NvmlSource("probe", library, Path(folder), SystemClock())
        running = asyncio.create_task(source.run(found.take))
        await asyncio.sleep(seconds)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return found


def smi() -> dict[str, dict[str, float]]:
    """nvidia-smi's figures by UUID and query; what it cannot tell is left out."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    query = f"--query-gpu=uuid,{','.join(COMPARED)}"
    done = subprocess.run(
        [program, query, "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True, check=False
    )
    found: dict[str, dict[str, float]] = {}
    for uuid, *cells in csv.reader(done.stdout.splitlines(), skipinitialspace=True):
        found[uuid] = {}
        for name, cell in zip(COMPARED, cells, strict=False):
            with suppress(ValueError):
                found[uuid][name] = float(cell)
    return found


def compare(gpu: str, readings: Readings, theirs: dict[str, float]) -> int:
    """Print one GPU's rows; how many differ."""
    wrong = 0
    named = {ours: (query, factor, slack) for query, (ours, factor, slack) in COMPARED.items()}
    print(f"\n| {gpu} | agent | nvidia-smi | |\n|---|---|---|---|")
    for name in Readings.__struct_fields__:
        value: Any = getattr(readings, name)
        query, factor, slack = named.get(name, ("", 1.0, 0.0))
        other = theirs.get(query)
        if value is None and other is None:
            continue
        told = "" if other is None else f"{other * factor:g}"
        good = value is None or other is None or abs(value - other * factor) <= slack + 1e-9
        missing = value is None and other is not None
        wrong += not good
        mark = "DIFFERS" if not good else "not read" if missing else ""
        print(f"| {name} | {'' if value is None else f'{value:g}'} | {told} | {mark} |")
    return wrong


def main() -> int:
    """Print the tables, or why there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, help="libnvidia-ml.so.1, where the linker does not find it")
    parser.add_argument("--seconds", type=float, default=12.0, help="how long to read: slow figures come every 10 s")
    options = parser.parse_args()
    found = asyncio.run(gather(options.library, options.seconds))
    if not found.samples:
        why = next((said.error for said in reversed(found.said) if said.error), "no GPU was found")
        print(f"not run: {why}")
        return 0
    theirs = smi()
    if found.node is not None:
        print(f"driver {found.node.driver}, NVML {found.node.library}, CUDA {found.node.cuda}")
        for gpu in found.node.gpus:
            versions = f"VBIOS {gpu.vbios}, InfoROM {gpu.inforom}, GSP {gpu.gsp}"
            print(f"- {gpu.index}: {gpu.name}, {versions}, MIG {list(gpu.mig)}")
    print(f"unsupported: {', '.join(found.said[-1].unsupported) or 'nothing'}")
    wrong = unread = 0
    for uuid, sample in found.samples.items():
        if sample.readings is None:
            unread += 1
            print(f"\n{uuid}: not read: {sample.error}")
            continue
        wrong += compare(uuid, sample.readings, theirs.get(uuid, {}))
        print(
            f"errors: {sample.errors or 'none'}; processes: {len(sample.processes or ())}; links: {len(sample.links)}"
        )
        for number, link in list(sample.links.items())[:1]:
            print(f"link {number}: {msgspec.to_builtins(link)}")
    print(
        f"\n{len(found.samples)} GPUs, {wrong} figures differ, {unread} not read"
        + ("" if theirs else "; no nvidia-smi")
    )
    return 1 if wrong or unread else 0


if __name__ == "__main__":
    sys.exit(main())
