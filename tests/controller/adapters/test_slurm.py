"""Against a real slurmctld with a hundred nodes: what is drained, what is left alone, what a crash of it leaves."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.adapters.config import SlurmConfig
from controller.adapters.slurm.slurm import OURS, Slurm
from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder
from controller.deciding.mind import real_core
from tests.controller.adapters.cluster import NODES, Cluster
from tests.controller.house import House, event, house, uuid
from tests.controller.node import Node
from vocab.errors import Refused
from vocab.lines import ActionLine, Subject
from vocab.states import ActionKind, ActionState

pytestmark = pytest.mark.e2e
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def config(cluster: Cluster, **more: object) -> SlurmConfig:
    return SlurmConfig(conf=str(cluster.conf), look_s=0.5, **more)  # type: ignore[arg-type]


def order(of: ActionKind, node: str, why: str = "xid:95 on GPU 0") -> OwnerOrder:
    action = ActionLine(
        at=0.0, subject=Subject(node=node), id="a-1", of=of, state=ActionState.ORDERED, token="1.1",
        rule="manager/slurm", policy="p", why=why,
    )  # fmt: skip
    return OwnerOrder(by="slurm", action=action, node=node, hold="h-0123456789abcdef")


async def seen(slurm: Slurm, node: str) -> Managed:
    return next(one for one in await slurm.look() if one.node == node)


async def happens(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await asyncio.to_thread(what):
            await asyncio.sleep(0.1)


async def test_all_nodes_are_seen_and_nothing_is_closed(cluster: Cluster) -> None:
    nodes = [one for one in await Slurm(config(cluster)).look() if one.node not in {"n1", "n2", "n3", "n4", "n5"}]
    assert len(nodes) == NODES - 5
    assert {(one.ours, one.busy, one.other, one.grain) for one in nodes} == {((), False, "", "node")}
    assert all(one.began_at > 1.7e9 for one in nodes)


async def test_a_node_with_a_job_is_draining_then_drained_then_resumed(cluster: Cluster) -> None:
    slurm = Slurm(config(cluster))
    job = await asyncio.to_thread(cluster.submit, "n2")
    for _ in range(2):  # told twice it is done once
        await slurm.act(order(ActionKind.DRAIN, "n2", 'xid:95 | "quoted"; it\'s = 1\nmore'))
    state, reason = cluster.state("n2")
    assert state == "draining"
    assert reason == 'corral:h-0123456789abcdef xid:95 | "quoted"; it\'s = 1 more'
    one = await seen(slurm, "n2")
    assert (one.ours, one.busy, one.other) == (("n2",), True, "")
    cluster.run("scancel", job)
    await happens(lambda: cluster.state("n2")[0] == "drained")
    assert (await seen(slurm, "n2")).busy is False
    for _ in range(2):  # a resume of a node that is not drained would be an error
        await slurm.act(order(ActionKind.RELEASE, "n2"))
    assert cluster.state("n2") == ("idle", "none")


async def test_a_reason_that_somebody_else_wrote_is_left_alone(cluster: Cluster) -> None:
    slurm = Slurm(config(cluster))
    cluster.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=NHC: nvidia-smi | failed")
    await slurm.act(order(ActionKind.DRAIN, "n3"))
    await slurm.act(order(ActionKind.RELEASE, "n3"))
    assert cluster.state("n3") == ("drained", "NHC: nvidia-smi | failed")
    one = await seen(slurm, "n3")
    assert (one.ours, one.other) == ((), "drained in slurm by somebody else (NHC: nvidia-smi | failed)")
    cluster.run("scontrol", "update", "NodeName=n3", "State=RESUME")


async def test_without_json_the_plain_form_says_the_same(cluster: Cluster, tmp_path: Path) -> None:
    plain = tmp_path / "sinfo"
    plain.write_text(
        '#!/bin/sh\nfor word; do [ "$word" = --json ] && { echo "unrecognized option" >&2; exit 1; }; done\n'
        'exec sinfo "$@"\n'
    )
    plain.chmod(0o755)
    by_word, by_json = Slurm(config(cluster, sinfo=str(plain))), Slurm(config(cluster))
    async with asyncio.timeout(WAIT_S):  # a node that was resumed counts as silent for a second
        while set(await by_word.look()) != set(await by_json.look()):
            await asyncio.sleep(0.2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
async def test_who_may_not_is_refused_with_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    weak = tmp_path / "scontrol"
    weak.write_text('#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups scontrol "$@"\n')
    weak.chmod(0o755)
    for folder in (cluster.folder, *cluster.folder.parents, tmp_path, *tmp_path.parents):
        if folder.is_relative_to(tempfile.gettempdir()) and folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    with pytest.raises(Refused, match="AdminLevel=Operator"):
        await Slurm(config(cluster, scontrol=str(weak))).act(order(ActionKind.DRAIN, "n4"))
    assert cluster.state("n4")[0] == "idle"


# -- with a controller ------------------------------------------------------------------------------------


async def fleet(home: House) -> Node:
    """The agent of n1, which has told what it is."""
    node = Node(home)
    await node.send()
    await node.send()
    async with asyncio.timeout(WAIT_S):
        while 'corral_manager_up{manager="slurm"} 1.0' not in (await home.raw("GET", "/metrics"))[1]:
            await asyncio.sleep(0.1)
    return node


async def test_a_fault_drains_its_node_and_its_release_resumes_it(cluster: Cluster, tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, slurm=config(cluster)) as home:
        node = await fleet(home)
        await node.send(event(1, gpu=3))
        await happens(lambda: cluster.state("n1")[0] == "drained")
        reason = cluster.state("n1")[1]
        (hold,) = await home.get("holds")
        assert reason.startswith(f"{OURS}{hold['id']} slurm keeps new work off n1 with all of its 8 GPUs")
        await home.post("releases", {"subject": {"gpu": uuid(3)}, "reason": "new board"})
        await happens(lambda: cluster.state("n1") == ("idle", "none"))


async def test_a_persons_resume_lifts_the_hold(cluster: Cluster, tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, slurm=config(cluster)) as home:
        node = await fleet(home)
        await node.send(event(1, gpu=3))
        await happens(lambda: cluster.state("n1")[0] == "drained")
        async with asyncio.timeout(WAIT_S):  # it has been seen
            while not [a for a in await home.get("actions") if (a["of"], a["state"]) == ("drain", "done")]:
                await asyncio.sleep(0.1)
        cluster.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        async with asyncio.timeout(WAIT_S):
            while await home.get("holds"):
                await asyncio.sleep(0.1)
        assert cluster.state("n1")[0] == "idle"


async def test_a_resume_that_is_refused_is_drained_again(cluster: Cluster, tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, slurm=config(cluster, on_resume="close_again")) as home:
        node = await fleet(home)
        await node.send(event(1, gpu=3))
        await happens(lambda: cluster.state("n1")[0] == "drained")
        async with asyncio.timeout(WAIT_S):
            while not [a for a in await home.get("actions") if (a["of"], a["state"]) == ("drain", "done")]:
                await asyncio.sleep(0.1)
        cluster.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        await happens(lambda: cluster.state("n1")[0] == "drained")
        assert "somebody opened it in slurm" in cluster.state("n1")[1]
        await home.post("releases", {"subject": {"gpu": uuid(3)}, "reason": "new board"})
        await happens(lambda: cluster.state("n1") == ("idle", "none"))


async def test_what_is_decided_while_slurmctld_is_dead_is_done_once_it_is_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with house(tmp_path, make_core=real_core, slurm=config(cluster)) as home:
        node = await fleet(home)
        cluster.kill_slurmctld()
        try:
            async with asyncio.timeout(WAIT_S):
                while 'corral_manager_up{manager="slurm"} 0.0' not in (await home.raw("GET", "/metrics"))[1]:
                    await asyncio.sleep(0.1)
            await node.send(event(1, gpu=3))
            waiting = [a for a in await home.get("actions") if a["of"] == "drain"]
            assert [(a["state"], a["subject"]) for a in waiting] == [("ordered", {"node": "n1"})]
        finally:
            await asyncio.to_thread(cluster.start_slurmctld)
        await happens(lambda: cluster.state("n1")[0] == "drained")
        await home.post("releases", {"subject": {"gpu": uuid(3)}, "reason": "new board"})
        await happens(lambda: cluster.state("n1") == ("idle", "none"))
