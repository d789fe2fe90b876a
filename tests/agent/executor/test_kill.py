"""SIGKILL at every step of a reset: the services come back as they were, and nothing is said that was not seen.

The victim is a real process (a fork) that runs the executor on the node's files and is killed before or after the
n-th thing that it does to them. What it left is then given to a new executor.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agent.executor.journal import Entry
from agent.roothelper.virtual import SERVICES
from tests.agent.executor.conftest import running, until
from tests.agent.executor.node import Node, reset_of
from vocab.states import ActionState

MOST_POINTS = 200  # far above what a reset has; a loop that does not end must fail


class Doom:
    """Kills this process at the point ``at``; points are counted over journal writes and requests."""

    def __init__(self, at: int) -> None:
        self._left = at

    def point(self, _: Any = None) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def dooms(node: Node, doom: Doom) -> None:
    put = node.journal.put

    def doomed(entry: Entry) -> None:
        doom.point()
        put(entry)
        doom.point()

    node.journal.put = doomed  # type: ignore[method-assign]
    node.helper.before = node.helper.after = doom.point


async def carry_out(node: Node) -> None:
    async with running(node):
        node.executor.take([reset_of(node)])
        await until(lambda: node.ended() and not node.journal.unfinished())


def killed_at(folder: Path, point: int) -> bool:
    """Whether the victim died at that point; False: it had ended its work before."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            node = Node(folder)
            dooms(node, Doom(point))
            asyncio.new_event_loop().run_until_complete(carry_out(node))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def resume(folder: Path) -> Node:
    """A new agent on what the victim left, whose controller still wants the order."""

    async def again(node: Node) -> None:
        async with running(node):
            node.executor.take([reset_of(node)], old=True)
            await until(lambda: node.ended() and not node.journal.unfinished())

    node = Node(folder)
    asyncio.new_event_loop().run_until_complete(again(node))
    return node


@pytest.mark.parametrize("active", [SERVICES, SERVICES[1:2], ()], ids=["all", "one", "none"])
def test_whoever_starts_next_brings_the_services_back(tmp_path, active):
    outcomes = []
    for point in range(MOST_POINTS):
        folder = tmp_path / str(point)
        folder.mkdir()
        node = Node(folder)
        for unit in set(SERVICES) - set(active):
            node.machine.stop(unit)
        node.state.gpus[0].remap_pending = 1
        node.close()
        if not killed_at(folder, point):
            break
        after = resume(folder)
        assert after.services() == active, point
        ended = after.ended()
        assert ended is not None
        outcomes.append(ended[1])
        was_reset = after.state.gpus[0].remap_pending == 0
        assert ended[1] is not ActionState.DONE or was_reset, point
        assert ended[1] is not ActionState.FAILED or not was_reset, point
        after.close()
    else:
        raise AssertionError("the reset never ended")
    assert set(outcomes) == {ActionState.FAILED, ActionState.TIMED_OUT, ActionState.DONE}
    assert outcomes == sorted(outcomes, key=[ActionState.FAILED, ActionState.TIMED_OUT, ActionState.DONE].index)
