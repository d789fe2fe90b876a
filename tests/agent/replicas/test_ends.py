import asyncio
import signal
from collections.abc import AsyncIterator

import pytest

from agent.replicas import identity
from agent.replicas.ends import Ends
from agent.replicas.identity import Identity
from tests.agent.replicas.node import until

BOOT = identity.boot_id()


@pytest.fixture
async def process() -> AsyncIterator[Identity]:
    child = await asyncio.create_subprocess_exec("sleep", "60")
    seen = identity.stat(child.pid)
    assert seen is not None
    yield Identity(child.pid, seen.start_s, BOOT)
    if child.returncode is None:
        child.kill()
    await child.wait()


async def test_the_end_of_a_process_is_told_once(process: Identity) -> None:
    told: list[str] = []
    ends = Ends(BOOT, told.append)
    assert ends.watch("r1", process)
    assert ends.watch("r1", process)
    identity.send(process, signal.SIGKILL, BOOT)
    await until(lambda: told, "an end")
    assert not ends.watch("r1", process)
    assert told == ["r1"]


async def test_whoever_has_the_pid_now_is_not_waited_for(process: Identity) -> None:
    ends = Ends(BOOT, lambda _: None)
    assert not ends.watch("r1", Identity(process.pid, process.start_s + 1.0, BOOT))
    assert not ends.watch("r1", Identity(process.pid, process.start_s, "another boot"))


async def test_what_is_forgotten_is_not_told(process: Identity) -> None:
    told: list[str] = []
    ends, other = Ends(BOOT, told.append), Ends(BOOT, told.append)
    ends.watch("r1", process)
    ends.watch("r2", process)
    ends.keep({"r2"})
    other.watch("r3", process)
    ends.close()
    identity.send(process, signal.SIGKILL, BOOT)
    await until(lambda: told, "the end that is still waited for")
    assert told == ["r3"]
