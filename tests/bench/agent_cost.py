"""What a whole agent costs: all its processes, eight GPUs, the real NVML bindings on the C library of the tests.

    python -m tests.bench.agent_cost [--seconds 120] [--peer PATH/TO/nvitop-exporter]

The agent runs as on a real node (its NVML child, kernel log from a FIFO, spool on disk, no controller) and is
scraped every 15 s. With --peer, nvitop's exporter runs beside it in the same minutes on the same library, scraped
as often, at its own default interval of 1 s; ratios are agent / peer. nvitop reads fewer things and keeps nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import msgspec

from agent.virtual.state import VirtualState
from tests.bench.nvml_cost import TICKS, WARM_UP_S, cpu_s, pss_mib
from tests.fakes.nvml.build import build
from tests.ports import free_ports

SCRAPE_S = 15.0


def family(pid: int) -> list[int]:
    """A process and all that it started, directly or not."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def configure(folder: Path, library: Path, port: int) -> Path:
    """The configuration of an agent on a real node without a controller."""
    os.mkfifo(folder / "kmsg")
    os.open(folder / "kmsg", os.O_RDWR)  # held open to the end: a log that has no writer has ended
    body = {
        "node": "bench",
        "controller": "http://127.0.0.1:9",
        "listen": f"127.0.0.1:{port}",
        "state_dir": str(folder / "state"),
        "run_dir": str(folder / "run"),
        "nvml_library": str(library),
        "kmsg": str(folder / "kmsg"),
    }
    path = folder / "agent.toml"
    path.write_bytes(msgspec.toml.encode(body))
    return path


def scrape(port: int) -> int:
    """The lines of one scrape."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return sum(1 for line in answer if not line.startswith(b"#"))


def watch(programs: dict[str, tuple[int, int]], seconds: float) -> dict[str, tuple[float, float, int]]:
    """CPU share of a core, PSS in MiB and series of each program (pid, port) over ``seconds``, scraping them."""
    time.sleep(WARM_UP_S + 5)
    before = {name: sum(map(cpu_s, family(pid))) for name, (pid, _) in programs.items()}
    began, lines = time.monotonic(), dict.fromkeys(programs, 0)
    while time.monotonic() - began < seconds:
        for name, (_, port) in programs.items():
            lines[name] = scrape(port)
        time.sleep(min(SCRAPE_S, max(0.0, seconds - (time.monotonic() - began))))
    took = time.monotonic() - began
    return {
        name: (
            (sum(map(cpu_s, family(pid))) - before[name]) / took * 100,
            sum(map(pss_mib, family(pid))),
            lines[name],
        )
        for name, (pid, _) in programs.items()
    }


def show(results: dict[str, tuple[float, float, int]], seconds: float) -> None:
    """Print the table, with a ratio where there is a peer."""
    print(f"| {seconds:g} s, 8 GPUs | CPU, % of one core | PSS, MiB, all processes | series |\n|---|---|---|---|")
    for name, (cpu, memory, series) in results.items():
        print(f"| {name} | {cpu:.2f} | {memory:.1f} | {series} |")
    if len(results) == 2:
        ours, theirs = results.values()
        print(f"| ratio | {ours[0] / max(theirs[0], 1 / TICKS):.2f} | {ours[1] / theirs[1]:.2f} | |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--peer", type=Path, help="nvitop-exporter of another environment")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        state = folder / "node.state"
        VirtualState.create(state, "bench").close()
        library = build(folder)
        ports = dict(zip(("corral agent", "nvitop-exporter"), free_ports(2), strict=True))
        commands = {
            "corral agent": [
                sys.executable,
                "-m",
                "agent",
                "--config",
                str(configure(folder, library, ports["corral agent"])),
            ]
        }
        if options.peer:
            commands["nvitop-exporter"] = [
                str(options.peer),
                "--port",
                str(ports["nvitop-exporter"]),
                "--interval",
                "1",
            ]
        env = {**os.environ, "CORRAL_FAKE_NVML_STATE": str(state), "LD_LIBRARY_PATH": str(library.parent)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = {name: subprocess.Popen(command, env=env, **quiet) for name, command in commands.items()}
        try:
            results = watch({name: (child.pid, ports[name]) for name, child in running.items()}, options.seconds)
        finally:
            for child in running.values():
                child.terminate()
                child.wait()
    show(results, options.seconds)


if __name__ == "__main__":
    main()
