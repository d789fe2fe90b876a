import asyncio
import os
import sys

from agent.ending import gone, kill, kill_group

SLEEPS = "import time; print('runs', flush=True); time.sleep(600)"
STARTS = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPS!r}], close_fds=False).wait()"
FLOODS = "print('runs', flush=True)\nwhile True: print('x' * 100_000)"


async def started(code: str, *files: int) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, start_new_session=True, pass_fds=files
    )
    assert await process.stdout.readline() == b"runs\n"
    return process


async def test_a_killed_process_is_gone_when_that_returns():
    process = await started(SLEEPS)
    await kill(process)
    assert process.returncode == -9


async def test_to_end_it_twice_is_no_error():
    process = await started(SLEEPS)
    await kill(process)
    await kill(process)
    await kill_group(process)


async def test_a_group_ends_with_all_that_it_has_started():
    ours, theirs = os.pipe()
    process = await started(STARTS, theirs)
    os.close(theirs)
    await kill_group(process)
    async with asyncio.timeout(30):
        assert await asyncio.to_thread(os.read, ours, 1) == b""  # nobody has the other end any more
    os.close(ours)
    assert process.returncode == -9


async def test_a_pipe_that_nobody_reads_to_its_end_is_shut():
    process = await started(FLOODS)
    while len(process.stdout._buffer) <= 2 * 64 * 1024:  # from there on asyncio reads no more
        await asyncio.sleep(0.001)
    await kill(process)
    assert process._transport.is_closing()


async def test_one_that_does_not_end_is_not_waited_for_longer():
    process = await started(SLEEPS)
    assert not await gone(process, 0.01)
    os.kill(process.pid, 9)
    assert await gone(process, 30.0)
