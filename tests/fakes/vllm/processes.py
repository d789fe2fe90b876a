"""The processes behind the server: the engine core, and its workers where there are several GPUs.

Run as a program, this file is one of them. It holds its GPU until its parent's end of the pipe closes, whatever
ends the parent: so nothing of a fake outlives its test.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

USED_BYTES = 20 * 2**30


def start(title: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    """A process with this title, as vLLM gives its own; it lives as long as its standard input is open."""
    words = [title, str(Path(__file__).resolve()), *arguments]
    python = Path("/proc/self/exe").resolve()  # sys.executable is lost under such a title
    return subprocess.Popen(words, executable=python, stdin=subprocess.PIPE)


def start_core(clients: Path | None, gpus: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """The engine core, which starts its workers itself."""
    return start("VLLM::EngineCore", ["core", str(clients or ""), *map(str, gpus)])


def hold(clients: str, gpu: str) -> Path | None:
    """Say that this process holds the GPU."""
    if not clients:
        return None
    Path(clients).mkdir(parents=True, exist_ok=True)
    mine = Path(clients) / str(os.getpid())
    draft = mine.with_suffix(".new")
    draft.write_text(json.dumps({"gpu": int(gpu), "used_bytes": USED_BYTES, "utilization": 0.5}))
    draft.rename(mine)
    return mine


def main(kind: str, clients: str, *gpus: str) -> None:
    workers, mine = [], None
    if kind == "worker" or len(gpus) == 1:
        mine = hold(clients, gpus[0])
    else:
        workers = [start(f"VLLM::Worker_TP{rank}", ["worker", clients, gpu]) for rank, gpu in enumerate(gpus)]
    sys.stdin.buffer.read()
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    if mine is not None:
        mine.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
