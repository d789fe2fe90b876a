"""How fast ``corral replay`` is on one core, and how much memory it takes.

    python -m tests.bench.replay_speed [--days 30] [--hours 6]

Two recordings, each replayed in a process of its own, so that its peak memory is its own:

    samples   one node of eight GPUs, read once a second: what one observation costs
    month     1,000 healthy GPUs on 125 nodes over 30 days, read every six hours, 750 replicas, 100 faults at random
              moments, each with what becomes of it: contained errors, and GPUs that are drained, reset and validated
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
NODES, GPUS, REPLICAS, FAULTS = 125, 8, 6, 100
DAY_S = 86400.0
Json = dict[str, Any]


def uuid(node: int, gpu: int) -> str:
    return f"GPU-{node:03d}-{gpu}"


def inventory(node: int, at: float = 0.0, **more: Any) -> Json:
    gpus = [
        {"uuid": uuid(node, gpu), "index": gpu, "pci": f"0000:{0x10 + gpu:02x}:00", "name": "NVIDIA H100 80GB HBM3"}
        for gpu in range(GPUS)
    ]
    return {"obs": "node", "at": at, "node": f"n{node:03d}", "boot_id": "b1", "driver": "570.1", "gpus": gpus} | more


def sample(dice: random.Random, node: int, gpu: int, at: float) -> Json:
    readings = {
        "temperature_c": 60 + dice.randrange(6), "power_w": 500 + dice.randrange(60), "power_limit_w": 700,
        "utilization_ratio": 1.0, "sm_active_ratio": 0.7, "memory_used_bytes": 70 << 30,
        "memory_total_bytes": 80 << 30, "clock_reasons": 0, "ecc_correctable": 0, "ecc_uncorrectable": 0,
        "remap_pending": 0, "remap_failed": 0, "pcie_width": 16, "pcie_width_max": 16, "sm_clock_hz": 1.7e9,
    }  # fmt: skip
    return {"obs": "gpu", "at": at, "node": f"n{node:03d}", "gpu": uuid(node, gpu), "readings": readings}


def fault(dice: random.Random, at: float) -> Iterator[Json]:
    """A contained error that passes, or an uncontained one that is reset and validated."""
    node, gpu = dice.randrange(NODES), dice.randrange(GPUS)
    name, address = f"n{node:03d}", f"0000:{0x10 + gpu:02x}:00"
    contained = dice.random() < 0.8
    tail = "94, pid=7, name=x, Contained: CE" if contained else "95, pid=7, name=x, Uncontained: LTC TAG (0x1,0x0)."
    yield {"obs": "kernel", "at": at, "node": name, "source": "kmsg", "line": f"NVRM: Xid (PCI:{address}): {tail}"}
    if not contained:
        yield inventory(node, at + 200.0, reset=[uuid(node, gpu)])
        check = {"obs": "check", "check": "canary", "gpu": uuid(node, gpu), "result": "pass"}
        yield check | {"at": at + 260.0, "node": name}


def month(file: TextIO, days: float, hours: float) -> int:
    """The recording of a fleet; how many observations it has."""
    dice = random.Random(1)
    lines: list[Json] = [inventory(node) for node in range(NODES)]
    wanted = {"replicas": NODES * REPLICAS, "gpus_per_replica": 1, "min_ready": NODES * 4}
    lines.append({"obs": "deployment", "at": 0.0, "deployment": "chat"} | wanted)
    for node in range(NODES):
        for gpu in range(REPLICAS):
            seen = {"replica": f"r{node}-{gpu}", "deployment": "chat", "gpus": [uuid(node, gpu)], "phase": "ready"}
            lines.append({"obs": "replica", "at": 0.0, "node": f"n{node:03d}", "ready": True, "running": 1} | seen)
    for turn in range(int(days * 24 / hours)):
        at = 60.0 + turn * hours * 3600
        lines += [sample(dice, node, gpu, at) for node in range(NODES) for gpu in range(GPUS)]
    for _ in range(FAULTS):
        lines += fault(dice, dice.uniform(100.0, days * DAY_S - 1000.0))
    lines.sort(key=lambda line: float(line["at"]))
    lines.append({"obs": "end", "at": days * DAY_S})
    file.writelines(json.dumps(line) + "\n" for line in lines)
    return len(lines)


def seconds(file: TextIO, count: int) -> int:
    """The recording of one node, read once a second."""
    dice = random.Random(1)
    file.write(json.dumps(inventory(0, period_s=1.0)) + "\n")
    file.writelines(json.dumps(sample(dice, 0, number % GPUS, 1.0 + number // GPUS)) + "\n" for number in range(count))
    return count + 1


PROGRAM = """
import io, resource, sys
from pathlib import Path
from corral.replay import replay
before = resource.getrusage(resource.RUSAGE_SELF)
out = io.StringIO()
assert replay([Path(sys.argv[1])], None, as_json=True, out=out, err=sys.stderr) == 0
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024,
      out.getvalue().count("\\n"))
"""


def measure(path: Path) -> tuple[float, float, int]:
    """Seconds of processor time, peak MiB, and the number of decision lines of one replay."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    spent, peak, lines = done.stdout.split()
    return float(spent), float(peak), int(lines)


def main(days: float, hours: float) -> None:
    """Write both recordings, replay them, print a line each."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "recording.jsonl"
        with path.open("w") as file:
            count = seconds(file, 40_000)
        spent, peak, _ = measure(path)
        print(f"samples: {count} observations, {count / spent:.0f} a second of one core, peak {peak:.0f} MiB")
        with path.open("w") as file:
            count = month(file, days, hours)
        spent, peak, lines = measure(path)
        print(
            f"month: {days:g} days of {NODES * GPUS} GPUs, {count} observations, {FAULTS} faults, {lines} lines: "
            f"{spent:.1f} s of one core ({count / spent:.0f} observations/s), peak {peak:.0f} MiB"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--hours", type=float, default=6.0, help="between two reads of a GPU of the fleet")
    chosen = parser.parse_args()
    main(chosen.days, chosen.hours)
