import asyncio
import os
import sys

from agent.ending import gone, kill, kill_group

SLEEPS = "import time; print('runs', flush=True); time.sleep(600)"
STARTS = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]).wait()"


async def started(code: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, start_new_session=True
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
    process = await started(STARTS)
    await kill_group(process)
    assert await process.stdout.read() == b""  # the grandchild had that pipe open, too
    assert process.returncode == -9


async def test_one_that_does_not_end_is_not_waited_for_longer():
    process = await started(SLEEPS)
    assert not await gone(process, 0.01)
    os.kill(process.pid, 9)
    assert await gone(process, 30.0)
