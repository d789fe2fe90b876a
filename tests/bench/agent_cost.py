"""What a whole agent costs: all its processes, eight GPUs, the real NVML bindings on the C library of the tests.

    python -m tests.bench.agent_cost [--seconds 120] [--engines] [--peer PATH/TO/nvitop-exporter]

The agent runs as on a real node (its NVML child, kernel log from a FIFO, spool on disk, no controller) and is
scraped every 15 s. With --peer, nvitop's exporter runs beside it in the same minutes on the same library, scraped
as often, at its own default interval of 1 s; ratios are agent / peer. nvitop reads fewer things and keeps nothing.
With --engines a second agent runs beside the first, with eight replicas (a program without a model) whose own cost
is not counted.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import msgspec

from agent.virtual.state import VirtualState
from tests.bench.nvml_cost import TICKS, cpu_s, pss_mib
from tests.fakes.nvml.build import build
from tests.ports import free_ports
from vocab.messages import Desired, ReplicaSpec
from vocab.observations import Member

SCRAPE_S = 15.0
START_S = 60.0
SETTLE_S = 12.0  # by then each GPU was read whole, replicas are up, and what only starts is over
AGENT, WITH_ENGINES, PEER = "corral agent", "corral agent, 8 replicas", "nvitop-exporter"
FAKE_REPLICA = Path(__file__).resolve().parents[1] / "fakes" / "replica"


def family(pid: int) -> list[int]:
    """A process and all that it started, directly or not, without replicas."""
    if b"fakes/replica" in Path(f"/proc/{pid}/cmdline").read_bytes():
        return []
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def replicas(folder: Path) -> list[int]:
    """The replicas that an agent in this folder has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if b"fakes/replica" in words and str(folder).encode() in words:
                found.append(int(process.name))
    return found


def want(folder: Path, state: VirtualState) -> None:
    """What a controller would have asked for: a replica on each GPU."""
    specs = tuple(
        ReplicaSpec(
            replica=f"bench-{index}",
            deployment="bench",
            members=(Member(node="bench", gpu=gpu.uuid.decode()),),
            model="none",
            token="1.1",
        )
        for index, gpu in enumerate(state.gpus)
    )
    desired = Desired(node="bench", epoch=1, generation=1, replicas=specs)
    (folder / "state").mkdir()
    (folder / "state" / "desired.json").write_bytes(msgspec.json.encode(desired))


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
        "replica_base_port": free_ports(1)[0] + 100,
        "replica_program": [sys.executable, str(FAKE_REPLICA)],
    }
    path = folder / "agent.toml"
    path.write_bytes(msgspec.toml.encode(body))
    return path


def scrape(port: int) -> int:
    """The lines of one scrape."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return sum(1 for line in answer if not line.startswith(b"#"))


def await_answer(port: int) -> None:
    """Wait until a program answers; on a busy machine a Python takes seconds to start."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            scrape(port)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def watch(programs: dict[str, tuple[int, int]], seconds: float) -> dict[str, tuple[float, float, int]]:
    """CPU share of a core, PSS in MiB and series of each program (pid, port) over ``seconds``, scraping them."""
    for _, port in programs.values():
        await_answer(port)
    time.sleep(SETTLE_S)
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
    if PEER in results:
        ours, theirs = results[AGENT], results[PEER]
        print(f"| ratio | {ours[0] / max(theirs[0], 1 / TICKS):.2f} | {ours[1] / theirs[1]:.2f} | |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--peer", type=Path, help="nvitop-exporter of another environment")
    parser.add_argument("--engines", action="store_true", help="a second agent with eight replicas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder = Path(place)
        library = build(folder)
        names = [AGENT, *([WITH_ENGINES] if options.engines else []), *([PEER] if options.peer else [])]
        running = {}
        for name, port in zip(names, free_ports(len(names)), strict=True):
            own = folder / f"of-{port}"
            own.mkdir()
            state = VirtualState.create(own / "node.state", "bench")
            if name == WITH_ENGINES:
                want(own, state)
            command = [str(options.peer), "--port", str(port), "--interval", "1"]
            if name != PEER:
                command = [sys.executable, "-m", "agent", "--config", str(configure(own, library, port))]
            env = {**os.environ, "CORRAL_FAKE_NVML_STATE": str(state.path), "LD_LIBRARY_PATH": str(folder)}
            child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(end, child, own)
            running[name] = (child.pid, port)
        results = watch(running, options.seconds)
        if options.engines:
            print(f"{len(replicas(folder))} replicas ran")
    show(results, options.seconds)


def end(child: subprocess.Popen[bytes], folder: Path) -> None:
    """End a program, and the replicas that outlive it."""
    child.terminate()
    child.wait()
    for pid in replicas(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
