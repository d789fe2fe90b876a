"""A healthy node, idle and at work, makes no event at all: what a virtual node shows for twenty minutes."""

import os
from pathlib import Path

import msgspec
import pytest

from agent.judge import Judge
from agent.sources.virtual import VirtualSource
from agent.virtual.state import VirtualState
from tests.agent.made import events
from vocab.beat import Beat, pack
from vocab.clock import VirtualClock
from vocab.observations import Member


class Replica(msgspec.Struct):
    replica: str
    members: tuple[Member, ...]
    pid: int | None


def beaten(folder: Path, replica: Replica, step: int) -> None:
    place = folder / "replicas" / replica.replica
    place.mkdir(parents=True, exist_ok=True)
    beat = Beat(pid=replica.pid or 0, ready=True, step=step, tokens=step * 4, running=4)
    (place / "beat").write_bytes(pack(beat, 2))


@pytest.mark.parametrize("busy", [(), (0, 1, 5), tuple(range(8))])
def test_a_healthy_node_is_silent(tmp_path, busy):
    clock = VirtualClock(1_000_000.0)
    state = VirtualState.create(tmp_path / "virtual.state", "node-a", clock=clock)
    uuids = [gpu.uuid.decode() for gpu in state.gpus]
    replicas = [Replica(f"chat-{n}", (Member(node="node-a", gpu=uuids[n]),), os.getpid()) for n in busy]
    source, judge, items = VirtualSource("node-a", state.path, clock, lambda: replicas), Judge("node-a"), []
    for second in range(400):
        clock.advance(3.0)
        for replica in replicas:
            beaten(tmp_path, replica, second * 60)
        now = clock.monotonic()
        while (due := judge.next_deadline()) is not None and due <= now:
            items += judge.tick(due)
        for observation in source.observe():
            items += judge.observe(observation, now)
    assert [(event.code, event.text) for event in events(items)] == []
