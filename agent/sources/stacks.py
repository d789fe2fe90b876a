"""Where the threads of a process stand, from ``/proc/PID/task``: evidence of a hang, read without its driver.

``status`` says what a thread is and does, ``wchan`` and ``syscall`` in which function of the kernel it waits and for
which call, ``stack`` the way there (root only). What may not be read is said so. All of it is bounded. A file of a
process that hangs can keep its reader: ``taken`` reads in a thread that nobody waits for.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

MOST_THREADS = 64
MOST_FRAMES = 16
MOST_CHARS = 6000  # an event holds 20 proofs, and all of it crosses the wire
READ_S = 5.0
UNREADABLE = "not permitted"


def of_threads(pid: int, proc: Path = Path("/proc")) -> str:
    """One line a thread, those in state D first; "" if the process has gone."""
    try:
        tasks = sorted((proc / str(pid) / "task").iterdir(), key=lambda path: int(path.name))
    except (OSError, ValueError):
        return ""
    lines = sorted(filter(None, map(_thread, tasks[:MOST_THREADS])), key=lambda line: " D " not in line[:40])
    lines += [f"… and {len(tasks) - MOST_THREADS} threads more"] if len(tasks) > MOST_THREADS else []
    return "\n".join(lines)[:MOST_CHARS]


def _thread(task: Path) -> str:
    """``4711 gpu-3 D wchan=nv_wait syscall=16 stack: nv_wait < nv_ioctl < …``."""
    status = dict(line.partition(":\t")[::2] for line in (_read(task / "status") or "").splitlines())
    if not status:
        return ""
    wchan, syscall, stack = _read(task / "wchan"), _read(task / "syscall"), _read(task / "stack")
    words = [task.name, status.get("Name", "?"), status.get("State", "?")[:1]]
    words.append(f"wchan={UNREADABLE if wchan is None else wchan.strip() or '0'}")
    words.append(f"syscall={UNREADABLE if syscall is None else next(iter(syscall.split()), '')}")
    words.append(f"stack: {UNREADABLE if stack is None else ' < '.join(_frames(stack)) or 'empty'}")
    return " ".join(words)


def _frames(stack: str) -> Iterator[str]:
    """``[<0>] nv_wait+0x10/0x20 [nvidia]`` without addresses."""
    for line in stack.splitlines()[:MOST_FRAMES]:
        yield line.partition("] ")[2].partition("+")[0] or line


def _read(path: Path) -> str | None:
    """None: that may not be read."""
    try:
        return path.read_text(errors="replace")
    except PermissionError:
        return None
    except OSError:
        return ""


async def taken(pid: int, proc: Path = Path("/proc"), read_s: float = READ_S) -> str:
    """Read beside the loop; what does not answer in time is said so."""
    done: Future[str] = Future()
    threading.Thread(target=lambda: done.set_result(of_threads(pid, proc)), name="stacks", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(read_s):
            return await asyncio.shield(asyncio.wrap_future(done))
    return f"{proc}/{pid} does not answer"
