import msgspec
import pytest

from agent.export import Export
from agent.latest import Latest
from agent.loop import EARLY_S, MOST_EARLY, SAVE_S, Loop
from agent.memory import pack, unpack
from agent.page import Page
from agent.scribe import Scribe
from agent.spool import Spool
from agent.steady import Steady
from agent.warden import Warden
from tests.agent.made import BOOTED, NODE, fallen, inventory, record, replica, sample, source, uuid, xid
from vocab.clock import VirtualClock
from vocab.messages import (
    ActionItem,
    ClearedItem,
    Desired,
    EventItem,
    FenceItem,
    HoldSpec,
    Order,
    ReplicaSpec,
    ReplicaStatus,
)
from vocab.observations import Exit, KernelRecord, Member
from vocab.states import ActionKind, ActionState, Level


class Replicas:
    """What the supervisor shows of itself, without processes."""

    def __init__(self):
        self.fenced, self.specs, self.living, self.looks, self.restarted = set(), None, {}, [], []

    def converge(self, specs):
        self.specs = tuple(specs)

    def fence(self, gpu):
        self.fenced.add(gpu)

    def unfence(self, gpu):
        self.fenced.discard(gpu)

    def restart(self, replica):
        self.restarted.append(replica)
        return replica in self.living

    def statuses(self):
        return tuple(
            ReplicaStatus(replica=name, deployment="chat", pid=pid, phase="ready") for name, pid in self.living.items()
        )

    def observations(self, at):
        looks, self.looks = self.looks, []
        return [msgspec.structs.replace(look, at=at) for look in looks]


class Agent:
    """A loop over a real spool and a virtual clock; ``again`` is a new process over the same disk."""

    def __init__(self, folder, *, level=Level.REPAIR, desired=None, clock=None):
        self.folder, self.level = folder, level
        self.clock = clock or VirtualClock(1_000_000.0)
        self.spool = Spool(folder / "spool")
        judge, fences, answered, _ = unpack(self.spool.state, NODE, "boot-1", 0.0)
        self.judge, self.replicas, self.woken = judge, Replicas(), 0
        self.latest = Latest(level, "1", "")
        steady = Steady(self.clock)
        self.export = Export(self.latest, steady.now, judge.open_counts())
        self.warden = Warden(
            node=NODE, level=level, pause_file=folder / "PAUSE", clock=self.clock, fences=fences, answered=answered,
            replicas=self.replicas, latest=self.latest, export=self.export, desired=desired,
        )  # fmt: skip
        self.scribe = Scribe(
            self.spool, lambda: pack(judge, fences, self.warden.answered), self._wake, self.export.failed
        )
        self.loop = Loop(
            node=NODE, boot_id="boot-1", clock=self.clock, steady=steady, judge=judge, warden=self.warden,
            scribe=self.scribe, replicas=self.replicas, latest=self.latest, page=Page(), export=self.export,
        )  # fmt: skip
        self.loop.wake_uplink = self._wake

    def _wake(self):
        self.woken += 1

    @property
    def now(self):
        return self.clock.now()

    def see(self, *observations):
        for observation in observations:
            stamp = {"kernel_s": self.now - BOOTED} if isinstance(observation, KernelRecord) else {}
            self.loop.take(msgspec.structs.replace(observation, at=self.now, **stamp))
        return self

    def wait(self, seconds):
        """Let time pass as the loop would: every deadline on its way."""
        end = self.clock.now() + seconds
        while (due := self.loop.next_deadline()) is not None and due <= end:
            self.clock.advance(max(0.001, due - self.loop.now()))
            self.loop.tick()
        self.clock.advance(max(0.0, end - self.clock.now()))
        self.loop.tick()

    def again(self, *, turned=True, **changes):
        """Killed and started again. ``turned``: the event loop had come round, so that all judged was written."""
        if turned:
            self.scribe.write()
        elif self.scribe._timer:
            self.scribe._timer.cancel()
        self.spool._segments[-1].close()
        return Agent(
            self.folder, **({"level": self.level, "clock": self.clock, "desired": self.warden.desired} | changes)
        )

    def items(self, kind):
        self.scribe.write()
        self.spool.sync()
        return [r.item for r in self.spool.pending(10_000, 2**30) if isinstance(r.item, kind)]

    def fences(self):
        return [(item.op, item.gpu) for item in self.items(FenceItem)]


@pytest.fixture
async def agent(tmp_path):
    made = Agent(tmp_path)
    made.see(inventory(0.0))
    return made


def spec(name="r1", phase="run", index=0):
    member = Member(node=NODE, gpu=uuid(index))
    return ReplicaSpec(replica=name, deployment="chat", members=(member,), model="m", phase=phase)


def desired(generation=1, **changes):
    return Desired(**({"node": NODE, "epoch": 1, "generation": generation, "level": Level.REPAIR} | changes))


HOLD = HoldSpec(id="h1", gpu=uuid(2), owner="policy", reason="xid:79")


async def test_a_kernel_record_fences_in_the_same_call(agent):
    agent.see(fallen(0, 2, seq=1))
    assert agent.replicas.fenced == {uuid(2)}
    (event,) = agent.items(EventItem)
    (fence,) = agent.items(FenceItem)
    assert (fence.op, fence.gpu, fence.event) == ("placed", uuid(2), event.event.id)
    assert agent.woken


async def test_at_level_observe_it_only_watches(tmp_path):
    agent = Agent(tmp_path, level=Level.OBSERVE).see(inventory(0), fallen(0, 2))
    assert agent.replicas.fenced == set()
    assert len(agent.items(EventItem)) == 1


async def test_the_lower_of_the_two_levels_counts(tmp_path):
    agent = Agent(tmp_path, desired=desired(level=Level.OBSERVE)).see(inventory(0), fallen(0, 2))
    assert agent.replicas.fenced == set()


async def test_a_forged_record_fences_nothing(agent):
    agent.see(fallen(0, 2, facility=1), *(sample(0, 2, power_w=70.0) for _ in range(3)))
    assert agent.replicas.fenced == set()


async def test_the_fence_ends_if_the_gpu_answers_after_all(agent):
    agent.see(fallen(0, 2), sample(0, 2, power_w=70.0), sample(0, 2, power_w=70.0))
    assert agent.replicas.fenced == set()
    assert agent.fences() == [("placed", uuid(2)), ("expired", uuid(2))]


async def test_the_pause_file_forbids_fences_and_not_their_end(agent, tmp_path):
    agent.see(fallen(0, 1))
    (tmp_path / "PAUSE").touch()
    agent.loop.look()
    assert agent.loop.paused()
    agent.see(fallen(0, 2))
    assert agent.replicas.fenced == {uuid(1)}
    agent.wait(121)
    assert agent.replicas.fenced == set()
    (tmp_path / "PAUSE").unlink()
    agent.loop.look()
    assert not agent.loop.paused()


async def test_a_hold_replaces_the_fence_and_replicas_stay_fenced_until_it_is_lifted(agent):
    agent.see(fallen(0, 2), sample(0, 2, error="GPU_IS_LOST"))
    agent.loop.apply(desired(holds=(HOLD,)))
    assert agent.fences() == [("placed", uuid(2)), ("replaced", uuid(2))]
    agent.wait(500)
    assert agent.replicas.fenced == {uuid(2)}
    agent.loop.apply(desired(2))
    assert agent.replicas.fenced == set()
    assert len(agent.fences()) == 2


async def test_a_fence_survives_the_agent(agent):
    agent.see(fallen(0, 2, seq=1))
    again = agent.again()
    assert again.replicas.fenced == {uuid(2)}
    again.see(inventory(0), fallen(0, 2, seq=1))
    assert again.fences() == [("placed", uuid(2))]


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("killed_after", range(0, 40, 7))
async def test_killed_anywhere_no_count_is_lost_and_nothing_is_told_twice(tmp_path, killed_after, turned):
    log = [xid(0, 95, f"pid={n % 3}, name=a, Uncontained: LTC TAG (0xA, 0xB).", n % 4, seq=n) for n in range(40)]
    agent = Agent(tmp_path).see(inventory(0), *log[:killed_after])
    again = agent.again(turned=turned).see(inventory(0), *log)
    again.wait(100)
    latest = {item.event.id: item.event for item in again.items(EventItem)}
    assert sum(event.count for event in latest.values()) == 40
    assert len(latest) == 12
    revisions = [(item.event.id, item.event.rev) for item in again.items(EventItem)]
    assert len(set(revisions)) == len(revisions)


async def test_records_from_before_the_inventory_wait_for_it(tmp_path):
    agent = Agent(tmp_path).see(fallen(0, 2))
    assert agent.items(EventItem) == []
    agent.see(inventory(0))
    assert agent.items(EventItem)[0].event.gpu == uuid(2)
    assert agent.replicas.fenced == {uuid(2)}


async def test_without_an_inventory_they_wait_for_seconds_only(tmp_path):
    agent = Agent(tmp_path).see(fallen(0, 2))
    agent.wait(EARLY_S + 0.1)
    assert agent.items(EventItem)[0].event.gpu is None


async def test_a_flood_before_the_inventory_does_not_wait_for_it(tmp_path):
    agent = Agent(tmp_path).see(*(record(0, f"line {number}") for number in range(MOST_EARLY - 1)), fallen(0, 2))
    assert agent.items(EventItem)[0].event.code == "xid:79"


async def test_without_a_driver_they_do_not_wait_and_the_node_is_unknown_and_says_why(tmp_path):
    agent = Agent(tmp_path).see(fallen(0, 2), source(0, "down", error="LIBRARY_NOT_FOUND: libnvidia-ml.so.1"))
    assert len(agent.items(EventItem)) == 1
    facts = agent.loop.facts()
    assert facts.gpus == ()
    assert "libnvidia-ml.so.1" in facts.unknown_because
    ready, why = agent.latest.ready()
    assert not ready
    assert "libnvidia-ml.so.1" in why


async def test_an_unreadable_kernel_log_is_an_event_about_the_node(agent):
    agent.see(source(0, "down", "kernel", "EPERM: /dev/kmsg may not be read"))
    (item,) = agent.items(EventItem)
    assert (item.event.code, item.event.gpu) == ("probe_permission", None)


async def test_a_signal_that_returns_is_told(agent):
    agent.see(source(0, "down", "kernel", "EPERM: /dev/kmsg"), source(0, "up", "kernel"))
    assert [item.cleared.code for item in agent.items(ClearedItem)] == ["probe_permission"]


async def test_what_a_person_called_healthy_and_is_not_is_told_again_once(agent):
    agent.see(sample(0, 2, recovery_action=1), sample(0, 2, recovery_action=1))
    assert len(agent.items(EventItem)) == 1
    agent.wait(100)
    for generation in (2, 3):  # the second one says nothing new
        agent.loop.apply(desired(generation, healthy={uuid(2): 5.0}))
        agent.see(sample(0, 2, recovery_action=1))
    assert [item.event.code for item in agent.items(EventItem)] == ["recovery_action"] * 2


async def test_an_input_that_breaks_something_is_counted_and_the_next_goes_on(agent):
    observe, agent.judge.observe = agent.judge.observe, lambda *_: 1 / 0
    agent.see(fallen(0, 1))
    agent.judge.observe = observe
    agent.see(fallen(0, 2))
    assert agent.replicas.fenced == {uuid(2)}
    body, _ = agent.export.exposition.render()
    assert b'corral_agent_failures_total{part="judge"} 1.0' in body


async def test_the_read_position_is_kept_even_if_nothing_happens(agent):
    agent.see(record(0, "usb 1-1: new device", 41))
    agent.wait(SAVE_S + 0.1)
    assert agent.again().judge.position == 41


async def test_replicas_start_only_once_their_gpus_were_read(agent):
    agent.loop.apply(desired(replicas=(spec(),)))
    assert agent.replicas.specs == ()
    agent.see(sample(0, 0, power_w=70.0))
    agent.loop.look()
    assert agent.replicas.specs == (spec(),)


async def test_nothing_is_converged_before_a_desired_is_known(agent):
    agent.loop.look()
    assert agent.replicas.specs is None


async def test_after_a_restart_the_stored_desired_is_in_force_and_what_lives_is_kept(agent):
    again = agent.again(desired=desired(replicas=(spec(),), holds=(HOLD,)))
    again.replicas.living = {"r1": 77}
    again.loop.look()
    assert again.replicas.specs == (spec(),)


async def test_while_the_pause_file_stands_no_replica_is_drained(agent, tmp_path):
    agent.replicas.living = {"r1": 77}
    agent.loop.apply(desired(replicas=(spec(),)))
    (tmp_path / "PAUSE").touch()
    agent.loop.look()
    agent.loop.apply(desired(2, replicas=(spec(phase="drain"),)))
    assert agent.replicas.specs == (spec(),)
    (tmp_path / "PAUSE").unlink()
    agent.loop.look()
    assert agent.replicas.specs == (spec(phase="drain"),)


async def test_an_order_that_this_agent_cannot_do_is_refused_once_with_the_next_step(agent):
    order = Order(id="a1", of=ActionKind.REBOOT_NODE, token="1.7", ttl_s=60.0)
    agent.loop.apply(desired(orders=(order,)))
    agent.loop.apply(desired(2, orders=(order,)))
    again = agent.again()
    again.loop.apply(desired(3, orders=(order,)))
    (answer,) = again.items(ActionItem)
    assert (answer.id, answer.token, answer.state) == ("a1", "1.7", ActionState.REFUSED)
    assert "by hand" in answer.error


async def test_a_restart_of_a_replica_is_carried_out_once(agent):
    agent.replicas.living = {"r1": 4242}
    order = Order(id="a1", of=ActionKind.RESTART_REPLICA, token="1.7", ttl_s=60.0, replica="r1")
    agent.loop.apply(desired(orders=(order,)))
    agent.loop.apply(desired(2, orders=(order,)))
    assert agent.replicas.restarted == ["r1"]
    assert [item.state for item in agent.items(ActionItem)] == [ActionState.RUNNING]


async def test_a_restart_of_what_does_not_live_is_refused(agent):
    order = Order(id="a1", of=ActionKind.RESTART_REPLICA, token="1.7", ttl_s=60.0, replica="r1")
    agent.loop.apply(desired(orders=(order,)))
    (answer,) = agent.items(ActionItem)
    assert (answer.state, answer.replica) == (ActionState.REFUSED, "r1")


async def test_a_paused_node_restarts_nothing(agent, tmp_path):
    agent.replicas.living = {"r1": 4242}
    (tmp_path / "PAUSE").touch()
    agent.loop.look()
    order = Order(id="a1", of=ActionKind.RESTART_REPLICA, token="1.7", ttl_s=60.0, replica="r1")
    agent.loop.apply(desired(orders=(order,)))
    assert agent.replicas.restarted == []
    assert [item.state for item in agent.items(ActionItem)] == [ActionState.REFUSED]


async def test_a_replica_is_shown_to_the_controller_as_the_judge_regards_it(agent):
    agent.replicas.living = {"r1": 4242}
    agent.replicas.looks = [replica(0, step=7, running=3, waiting=0, health="timeout")]
    for _ in range(3):
        agent.replicas.looks = [replica(0, step=7, running=3, waiting=0, health="timeout", p999_step_s=0.1)]
        agent.loop.look()
        agent.clock.advance(6.0)
    (status,) = agent.loop.replicas()
    assert (status.stepping, status.healthy) == (False, False)


async def test_a_replica_that_died_is_an_event(agent):
    agent.replicas.looks = [replica(0, phase="stopped", exit=Exit(signal=9))]
    agent.loop.look()
    assert [item.event.code for item in agent.items(EventItem)] == ["replica_died"]


async def test_a_wall_clock_that_jumps_does_not_end_a_fence_early(agent):
    agent.see(fallen(0, 2))
    agent.clock.step_wall(3600.0)
    agent.loop.tick()
    assert agent.replicas.fenced == {uuid(2)}


async def test_a_state_of_another_version_starts_anew_and_says_so(tmp_path, caplog):
    spool = Spool(tmp_path / "spool")
    spool.append([], b"\x91\x01")
    spool.close()
    agent = Agent(tmp_path)
    assert agent.judge.position is None
    assert "another version" in caplog.text


async def test_the_last_state_is_written_at_a_clean_stop(agent):
    agent.see(record(0, "usb 1-1: new device", 41))
    await agent.scribe.close()
    assert Agent(agent.folder).judge.position == 41


SHOULD_SHOW = {"utilization_ratio": 1.0, "power_w": 210.0, "power_limit_w": 230.0}
ZEROS = {"graphics_active_ratio": 0.0, "sm_active_ratio": 0.0, **SHOULD_SHOW}


def shown(agent):
    body, _ = agent.export.exposition.render()
    return body.decode()


async def test_counters_that_are_known_to_be_broken_are_absent_with_the_reason_until_they_work(agent):
    active = f'corral_gpu_sm_active_ratio{{gpu="{uuid(0)}"}}'
    agent.see(*[sample(0, 0, **ZEROS)] * 2)
    assert f"{active} 0.0\n" in shown(agent)
    agent.see(sample(0, 0, **ZEROS), sample(0, 0, **SHOULD_SHOW))  # the second says nothing of them: none is carried on
    assert active not in shown(agent)
    kept = agent.latest.gpus[uuid(0)].sample
    assert (kept.readings.sm_active_ratio, kept.readings.utilization_ratio) == (None, 1.0)
    assert kept.errors["sm_active_ratio"] == "CONTRADICTED"
    assert agent.replicas.fenced == set()
    agent.see(*[sample(0, 0, **(ZEROS | {"sm_active_ratio": 0.99}))] * 3)
    assert f"{active} 0.99\n" in shown(agent)


async def test_values_that_cannot_be_are_counted_by_field_and_not_shown(agent):
    percent = [97, 98, 100, 4294967295, 99, 131072, 98, -1, 0, 101]
    agent.see(*(sample(0, 0, utilization_ratio=value / 100) for value in percent))
    agent.see(*(sample(0, 0, temperature_c=value) for value in (61.0, 62.0, 255.0)))
    agent.see(sample(0, 0, memory_used_bytes=2**64 - 1))
    text = shown(agent)
    for name, count in {"utilization_ratio": 4, "temperature_c": 1, "memory_used_bytes": 1}.items():
        assert f'corral_agent_rejected_values_total{{field="{name}"}} {count}.0\n' in text
    assert f'corral_gpu_memory_used_bytes{{gpu="{uuid(0)}"}}' not in text
    assert agent.replicas.fenced == set()
