"""What is kept of a process that hangs: from a made-up /proc, and from this process itself."""

import os
from pathlib import Path

from agent.sources.stacks import MOST_CHARS, MOST_THREADS, of_threads, taken


def thread(proc: Path, tid: int, state: str = "S", stack: str | None = "", name: str = "gpu-3") -> Path:
    folder = proc / "70" / "task" / str(tid)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\t{name}\nState:\t{state} (word)\nPid:\t{tid}\n")
    (folder / "wchan").write_text("nv_wait")
    (folder / "syscall").write_text("16 0x3 0xc020462a 0x7f 0x0 0x0 0x0 0x7ffd 0x7f\n")
    if stack is None:
        (folder / "stack").symlink_to(folder / "stack")  # cannot be read, as root too
    else:
        (folder / "stack").write_text(stack)
    return folder


def test_a_thread_is_told_by_where_it_waits_and_how_it_came_there(tmp_path: Path) -> None:
    thread(tmp_path, 70)
    thread(tmp_path, 71, "D", "[<0>] nv_wait+0x10/0x20 [nvidia]\n[<0>] nvidia_ioctl+0x1/0x2 [nvidia]\n")
    first, second = of_threads(70, tmp_path).splitlines()
    assert first == "71 gpu-3 D wchan=nv_wait syscall=16 stack: nv_wait < nvidia_ioctl"
    assert second == "70 gpu-3 S wchan=nv_wait syscall=16 stack: empty"


def test_what_may_not_be_read_is_said() -> None:
    # The stack of our own process is not ours to read, unless we are root.
    (line, *_) = of_threads(os.getpid()).splitlines()
    assert "wchan=" in line
    assert ("stack: not permitted" in line) == (os.geteuid() != 0) or "stack: " in line


def test_it_is_bounded_however_many_threads_there_are(tmp_path: Path) -> None:
    for tid in range(70, 70 + MOST_THREADS + 6):
        thread(tmp_path, tid)
    told = of_threads(70, tmp_path)
    assert len(told) <= MOST_CHARS
    assert told.endswith("… and 6 threads more")
    for tid in range(70, 70 + MOST_THREADS):
        (tmp_path / "70" / "task" / str(tid) / "stack").write_text("[<0>] a_function_of_the_driver+0x1/0x2\n" * 50)
    assert len(of_threads(70, tmp_path)) <= MOST_CHARS


def test_a_process_that_has_gone_tells_nothing(tmp_path: Path) -> None:
    assert of_threads(70, tmp_path) == ""


async def test_a_proc_that_keeps_its_reader_does_not_keep_the_loop(tmp_path: Path) -> None:
    folder = thread(tmp_path, 70)
    (folder / "status").unlink()
    os.mkfifo(folder / "status")  # opening it waits for a writer
    assert await taken(70, tmp_path, read_s=0.05) == f"{tmp_path}/70 does not answer"
    with (folder / "status").open("w"):
        pass  # let the reader go
