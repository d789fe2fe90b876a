"""Which orders are carried out: each once, none that is stale, over, taken back, forbidden or beyond this node."""

import pytest

from agent.executor.executor import MOST_KNOWN
from agent.executor.journal import Entry, Journal, Step, numbers
from agent.roothelper.requests import Reboot, ResetGpus
from agent.roothelper.virtual import SERVICES
from agent.virtual.faults import Fault, apply
from tests.agent.executor.conftest import running, until
from tests.agent.executor.node import Node, kinds, reboot_of, reset_of, validate_of
from vocab.errors import InputError
from vocab.observations import Check
from vocab.states import ActionKind, ActionState, Level


async def carried_out(node: Node, *orders, wanted=None):
    async with running(node):
        for order in orders:
            node.executor.take([*orders] if wanted is None else wanted)
            await until(lambda order=order: node.ended(order.id))


def resets(node: Node) -> int:
    return kinds(node.helper.asked).count(ResetGpus.__name__)


async def test_an_order_that_is_told_twice_is_carried_out_once(node):
    order = reset_of(node)
    async with running(node):
        node.executor.take([order])
        node.executor.take([order])
        await until(node.ended)
        node.executor.take([order])
    assert resets(node) == 1


async def test_orders_that_no_longer_stand_are_not_remembered_for_ever(node):
    async with running(node):
        for number in range(MOST_KNOWN + 10):
            node.executor.take([reset_of(node, id=f"a-{number}", token=f"1.{number}", ttl_s=0.0)], old=True)
            assert node.ended(f"a-{number}")
    assert len(node.executor._taken) == MOST_KNOWN + 1
    node.told.clear()
    node.executor.take([reset_of(node, id=f"a-{MOST_KNOWN}", token=f"1.{MOST_KNOWN}", ttl_s=0.0)], old=True)
    assert not node.told


async def test_a_new_agent_does_not_carry_it_out_again_and_says_again_what_came_of_it(node):
    order = reset_of(node)
    await carried_out(node, order)
    again = Node(node.folder)
    await carried_out(again, order)
    assert again.ended()[1] is ActionState.DONE
    assert again.helper.asked == []
    again.close()


async def test_the_same_action_under_a_new_token_is_a_new_order(node):
    await carried_out(node, reset_of(node))
    node.told.clear()
    await carried_out(node, reset_of(node, token="1.9"))
    assert resets(node) == 2


@pytest.mark.parametrize("token", ["1.6", "0.99", "", "nonsense", "1.7"])
async def test_an_order_with_a_token_that_is_not_newer_than_what_was_begun_is_stale(node, token):
    await carried_out(node, reset_of(node))
    await carried_out(node, reset_of(node, id="a-2", token=token))
    _, state, why = node.ended("a-2")
    assert state is ActionState.REFUSED
    assert "stale" in why
    assert resets(node) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc", "a/b", "a\n", "x" * 65])
async def test_an_order_whose_name_cannot_be_a_folder_is_refused(node, name):
    async with running(node):
        node.executor.take([reset_of(node, id=name)])
        await until(lambda: node.ended(name))
    assert node.ended(name)[1] is ActionState.REFUSED
    assert resets(node) == 0


async def test_a_higher_epoch_is_newer_whatever_its_number(node):
    await carried_out(node, reset_of(node))
    await carried_out(node, reset_of(node, id="a-2", token="2.1"))
    assert node.ended("a-2")[1] is ActionState.DONE


async def test_orders_that_come_together_are_carried_out_by_their_tokens(node):
    late, early = reset_of(node, 1, id="a-2", token="1.10"), reset_of(node, 0, id="a-1", token="1.9")
    await carried_out(node, late, early)
    assert [node.ended(name)[1] for name in ("a-1", "a-2")] == [ActionState.DONE] * 2


async def test_an_order_whose_time_is_over_is_not_begun(node):
    await carried_out(node, reset_of(node, ttl_s=0.0))
    assert node.ended()[1] is ActionState.EXPIRED
    assert node.helper.asked == []


async def test_an_order_that_an_earlier_agent_was_told_and_had_not_begun_is_never_begun(node):
    async with running(node):
        node.executor.take([reset_of(node)], old=True)
    assert node.ended()[1] is ActionState.FAILED
    assert node.helper.asked == []


async def test_a_pause_lets_an_order_wait_and_the_end_of_the_pause_lets_it_go(node):
    node.pause.touch()
    async with running(node):
        node.executor.take([reset_of(node)])
        await until(node.journal.unfinished)
        assert node.helper.asked == []
        node.pause.unlink()
        await until(node.ended)
    assert node.ended()[1] is ActionState.DONE


async def test_an_order_that_is_taken_back_during_a_pause_is_not_begun(node):
    node.pause.touch()
    async with running(node):
        node.executor.take([reset_of(node)])
        await until(node.journal.unfinished)
        node.executor.take([])
        await until(node.ended)
    assert node.helper.asked == []


async def test_a_validation_goes_on_during_a_pause(node):
    node.pause.touch()
    async with running(node):
        node.executor.take([reset_of(node), validate_of(node)])
        await until(lambda: node.ended("v-1"))
    assert node.ended("v-1")[1] is ActionState.DONE


@pytest.mark.parametrize("level", [Level.OBSERVE, Level.FENCE, Level.CORDON])
async def test_a_node_whose_own_level_is_lower_refuses(tmp_path, level):
    node = Node(tmp_path, level=level)
    await carried_out(node, reset_of(node))
    _, state, why = node.ended()
    assert state is ActionState.REFUSED
    assert level in why
    node.close()


async def test_a_disk_that_takes_no_more_on_the_way_leaves_no_service_stopped(node):
    put, full = node.journal.put, []

    def fails(entry: Entry) -> None:
        if full:
            raise OSError(28, "No space left on device")
        put(entry)

    node.journal.put = fails
    node.helper.after = lambda request: full.append(request) if isinstance(request, ResetGpus) else None
    async with running(node):
        node.executor.take([reset_of(node)])
        await until(lambda: full and node.services() == SERVICES)
        assert node.journal.unfinished()
        assert node.ended() is None
        node.helper.after = lambda _: None
        full.clear()
        node.executor.take([reset_of(node), reset_of(node, 1, id="a-2", token="1.9")])
        await until(lambda: node.ended("a-2"))
    assert node.journal.unfinished() == ()
    assert node.ended("a-1")[1] is ActionState.TIMED_OUT


async def test_a_disk_that_takes_nothing_lets_nothing_begin(node):
    def fails(_: Entry) -> None:
        raise OSError(28, "No space left on device")

    node.journal.put = fails
    await carried_out(node, reset_of(node))
    assert node.ended()[1] is ActionState.REFUSED
    assert node.helper.asked == []


async def test_what_the_node_can_do_is_learnt(node):
    async with running(node):
        await until(lambda: node.learnt is not None)
    assert node.learnt == (ActionKind.RESET_GPU, ActionKind.REBOOT_NODE)


# -- validation -----------------------------------------------------------------------------------------


async def test_a_healthy_gpu_passes_its_validation_and_every_check_is_seen(node):
    async with running(node):
        node.executor.take([validate_of(node)])
        _, state, why = await until(lambda: node.ended("v-1"))
    assert state is ActionState.DONE
    assert "presence, ecc, remap, fabric, links" in why
    assert {(check.check, check.result) for check in node.around.seen} == {
        (name, "pass") for name in ("presence", "ecc", "remap", "fabric", "links")
    }


@pytest.mark.parametrize(
    ("fault", "check", "code"),
    [
        (Fault(kind="xid", code=79), "presence", "gpu_lost"),
        (Fault(kind="ecc", count=2), "ecc", "ecc_uncorrectable"),
        (Fault(kind="remap"), "remap", "remap_pending"),
        (Fault(kind="remap", failed=True), "remap", "remap_failed"),
    ],
)
async def test_a_gpu_with_a_fault_fails_its_validation(node, fault, check, code):
    apply(node.state, fault)
    async with running(node):
        node.executor.take([validate_of(node)])
        _, state, why = await until(lambda: node.ended("v-1"))
    assert state is ActionState.FAILED
    assert check in why
    assert (node.around.seen[0].check, node.around.seen[0].code) == (check, code)


async def test_a_fabric_that_still_registers_the_gpu_is_waited_for(node):
    node.state.gpus[0].fabric_state = 2
    async with running(node):
        node.executor.take([validate_of(node)])
        looks = node.around.looks
        await until(lambda: node.around.looks > looks + 2)
        assert node.ended("v-1") is None
        node.state.gpus[0].fabric_state = 3
        assert (await until(lambda: node.ended("v-1")))[1] is ActionState.DONE


async def test_work_that_comes_out_wrong_fails_a_validation_whose_readings_are_well(node):
    wrong = Check(at=1.0, check="canary", gpu=node.uuid(), result="problem", code="silent_corruption", text="12 of 12")
    node.around.active = (Check(at=1.0, check="diag_open", gpu=node.uuid(), result="pass"), wrong)
    async with running(node):
        node.executor.take([validate_of(node)])
        _, state, why = await until(lambda: node.ended("v-1"))
    assert state is ActionState.FAILED
    assert "canary: 12 of 12" in why
    assert node.around.seen[0] == wrong  # problems first


async def test_work_that_could_not_be_run_fails_no_validation_and_is_named(node):
    node.around.active = (Check(at=1.0, check="canary", gpu=node.uuid(), result="unknown", text="no PyTorch"),)
    async with running(node):
        node.executor.take([validate_of(node)])
        _, state, why = await until(lambda: node.ended("v-1"))
    assert state is ActionState.DONE
    assert "not known: canary" in why


# -- reboot ---------------------------------------------------------------------------------------------


async def test_a_reboot_is_done_once_there_is_a_new_boot_id(node):
    async with running(node):
        node.executor.take([reboot_of()])
        await until(node.ended)
    assert node.ended()[1] is ActionState.DONE
    assert node.around.events == ["go down"]


async def test_an_agent_that_starts_in_the_new_boot_says_that_it_is_done(node):
    order = reboot_of()
    node.journal.put(Entry(order=order, boot_id="the boot before", taken_at=5.0, step=Step.REPAIRING))
    async with running(node):
        node.executor.take([order], old=True)
        await until(node.ended)
    assert node.ended()[1] is ActionState.DONE
    assert Reboot.__name__ not in kinds(node.helper.asked)


@pytest.mark.parametrize(
    ("file", "words"),
    [(b'{"users": ["anna"]}', "anna is logged in"), (b'{"inhibitors": ["apt"]}', "apt forbids a shutdown")],
)
async def test_people_and_inhibitors_keep_a_node_up(node, file, words):
    (node.folder / "virtual.services.json").write_bytes(file)
    await carried_out(node, reboot_of())
    _, state, why = node.ended()
    assert state is ActionState.REFUSED
    assert words in why
    assert node.around.events == []


async def test_the_pause_file_while_replicas_leave_keeps_the_node_up_and_they_come_back(node):
    node.around.replicas = frozenset({2**22 + 1})
    async with running(node):
        node.executor.take([reboot_of()])
        await until(lambda: node.around.events == ["go down"])
        node.pause.touch()
        await until(node.ended)
    assert node.ended()[1] is ActionState.FAILED
    assert node.around.events == ["go down", "stay up"]
    assert Reboot.__name__ not in kinds(node.helper.asked)


# -- the journal ----------------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_read_stops_the_start_and_says_what_to_do(tmp_path):
    (tmp_path / "repairs.json").write_bytes(b"\x00\x01")
    with pytest.raises(InputError, match="start by hand"):
        Journal(tmp_path / "repairs.json")


def test_ended_entries_are_forgotten_in_time_and_unfinished_ones_never(tmp_path):
    journal = Journal(tmp_path / "repairs.json")
    first = Entry(order=reboot_of(id="first", token="1.1"), boot_id="b", taken_at=0.0, step=Step.STOPPING)
    journal.put(first)
    for number in range(200):
        order = reboot_of(id=f"a-{number}", token=f"1.{number + 2}")
        journal.put(Entry(order=order, boot_id="b", taken_at=0.0, step=Step.ENDED))
    again = Journal(tmp_path / "repairs.json")
    assert again.unfinished() == (first,)
    assert again.newest == (1, 201)
    assert (tmp_path / "repairs.json").stat().st_size < 64_000


@pytest.mark.parametrize(("token", "expected"), [("1.2", (1, 2)), ("", (0, 0)), ("1", (0, 0)), ("².", (0, 0))])
def test_a_token_is_two_numbers(token, expected):
    assert numbers(token) == expected
