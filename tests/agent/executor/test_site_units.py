"""Units of the site that run replicas: stopped, restarted and started again, once, and only what is ours to start."""

import msgspec
import pytest

from agent.executor.unit_book import KEPT, Entry, Step, UnitBook
from tests.agent.executor.conftest import until
from tests.agent.executor.site import REPLICA, UNIT, Site, drain, release, restart, serving
from vocab.errors import InputError
from vocab.messages import Order
from vocab.observations import Owner
from vocab.states import ActionKind, ActionState, Level

GONE = ActionState.RUNNING  # that it has gone is seen by the controller itself
DONE, FAILED, EXPIRED, REFUSED = ActionState.DONE, ActionState.FAILED, ActionState.EXPIRED, ActionState.REFUSED


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


async def ended(site, number):
    return await until(lambda: site.outcome(f"a-{number}"))


async def stopped(site):
    """A drain that has ended, and whose replica is seen no more."""
    site.agent.take([drain()])
    assert (await ended(site, 1))[0] is GONE
    site.sees()


async def test_a_drain_has_systemd_stop_its_unit_and_a_release_start_it_again(site):
    async with site.running():
        await stopped(site)
        site.agent.take([release()])
        assert await ended(site, 2) == (DONE, "systemd has started vllm@0.service again")
    assert site.systemd.told == ["stop", "start"]
    assert [state for name, state, _ in site.told if name == "a-1"] == [GONE, GONE]
    assert site.units == ("vllm@.service",)


async def test_a_stop_may_take_as_long_as_its_unit_says(site):
    site.systemd.slow = True
    async with site.running():
        site.agent.take([drain()])
        await until(lambda: site.systemd.told == ["stop"])
        site.agent.take([])  # the controller sees that it has gone before systemd says so
        site.systemd.does("stop")
        assert (await ended(site, 1))[0] is GONE
        assert site.systemd.told == ["stop"]


async def test_one_that_does_not_stop_in_time_is_told_and_is_still_ours_to_start(site):
    site.systemd.slow = True
    async with site.running():
        site.agent.take([drain()])
        await until(lambda: site.systemd.told == ["stop"])
        site.clock.advance(3601.0)
        assert await ended(site, 1) == (ActionState.TIMED_OUT, "vllm@0.service does not stop")
        site.systemd.does("stop")
        site.sees()
        site.agent.take([release()])
        assert (await ended(site, 2))[0] is DONE
    assert site.systemd.told == ["stop", "start"]


async def test_an_engine_with_a_door_is_shut_and_waited_for_before_it_is_stopped(site):
    busy = serving(engine="torch", running=1)
    site.sees(busy)
    async with site.running():
        site.agent.take([drain(drain_s=60.0)])
        await until(lambda: site.doors.said == ["close http://127.0.0.1:8000"])
        assert site.systemd.told == []
        site.sees(msgspec.structs.replace(busy, running=0))
        assert (await ended(site, 1))[0] is GONE
    assert site.systemd.told == ["stop"]


async def test_an_engine_without_one_is_given_its_prestop_time(site):
    async with site.running():
        site.agent.take([drain(prestop_s=20.0, drain_s=60.0)])
        await until(lambda: site.book.of(REPLICA) is not None and site.book.of(REPLICA).unit)
        assert site.systemd.told == []
        site.clock.advance(20.0)
        assert (await ended(site, 1))[0] is GONE
    assert site.doors.said == []


async def test_a_drain_that_is_taken_back_before_the_stop_leaves_it_as_it_was(site):
    site.sees(serving(engine="torch", running=1))
    async with site.running():
        site.agent.take([drain(drain_s=60.0)])
        await until(lambda: site.doors.said)
        site.agent.take([])
        assert await ended(site, 1) == (EXPIRED, "the order was taken back")
    assert site.systemd.told == []
    assert site.doors.said == ["close http://127.0.0.1:8000", "reopen http://127.0.0.1:8000"]


async def test_a_pause_stops_a_drain_and_no_release(site):
    async with site.running():
        await stopped(site)
        site.pause.touch()
        site.agent.take([release()])
        assert (await ended(site, 2))[0] is DONE
        site.sees(serving(pid=200))
        site.agent.take([drain(3)])
        await until(lambda: site.book.of(REPLICA).key == ("a-3", "1.3"))
        assert site.systemd.told == ["stop", "start"]
        site.pause.unlink()
        assert (await ended(site, 3))[0] is GONE


async def test_nothing_is_done_below_the_level_and_no_unit_is_offered(tmp_path):
    site = Site(tmp_path, level=Level.OBSERVE)
    async with site.running():
        site.agent.take([drain()])
        state, why = await ended(site, 1)
    assert (state, "level" in why) == (REFUSED, True)
    assert (site.units, site.systemd.told) == ((), [])


# -- whose it is to start -----------------------------------------------------------------------------------


async def test_what_a_person_has_stopped_is_not_started_by_us(site):
    async with site.running():
        site.systemd.does("stop")
        site.agent.take([drain()])
        assert await ended(site, 1) == (GONE, "vllm@0.service was stopped by somebody else")
        site.sees()
        site.agent.take([release()])
        assert await ended(site, 2) == (DONE, "no unit of it is down by us")
    assert site.systemd.told == []


async def test_what_a_person_has_started_and_stopped_since_is_left_to_them(site):
    async with site.running():
        await stopped(site)
        site.systemd.does("start")
        site.systemd.does("stop")
        site.agent.take([release()])
        assert await ended(site, 2) == (
            DONE,
            "vllm@0.service has run since and was stopped again: it is left as it is",
        )
    assert site.systemd.told == ["stop"]


async def test_what_was_seen_running_since_is_left_to_them_though_systemd_has_forgotten(site):
    async with site.running():
        await stopped(site)
        site.sees(serving(pid=200))
        await until(lambda: not site.book.of(REPLICA).down)
        site.sees()
        site.systemd.does("stop", invocation="")
        site.agent.take([release()])
        assert (await ended(site, 2))[1] == "no unit of it is down by us"
    assert site.systemd.told == ["stop"]


async def test_a_look_from_before_the_stop_is_nobody_who_is_back(site):
    async with site.running():
        site.agent.take([drain()])
        assert (await ended(site, 1))[0] is GONE
        site.agent.take([release()])  # what is seen is still the process that was stopped
        assert (await ended(site, 2))[1] == "systemd has started vllm@0.service again"


@pytest.mark.parametrize("state", ["masked", "disabled"])
async def test_what_a_person_has_taken_out_of_use_since_is_left_so(site, state):
    async with site.running():
        await stopped(site)
        site.systemd.does("stop", file_state=state)
        site.agent.take([release()])
        assert await ended(site, 2) == (DONE, f"vllm@0.service is {state} since: it is left as it is")
    assert site.systemd.told == ["stop"]


async def test_a_second_drain_of_what_we_have_stopped_leaves_it_ours_to_start(site):
    async with site.running():
        await stopped(site)
        site.agent.take([drain(3)])
        assert await ended(site, 3) == (GONE, "nothing of it runs here any more")
        site.agent.take([release(4)])
        assert (await ended(site, 4))[0] is DONE
    assert site.systemd.told == ["stop", "start"]


async def test_what_runs_already_is_not_started(site):
    async with site.running():
        await stopped(site)
        site.systemd.does("start")
        site.agent.take([release()])
        assert await ended(site, 2) == (DONE, "vllm@0.service runs")


async def test_a_unit_that_fails_when_it_is_started_again_is_told(site):
    async with site.running():
        await stopped(site)
        site.systemd.does, does = (
            (lambda verb, unit: does(verb, unit, active="failed", result="exit-code")),
            site.systemd.does,
        )
        site.agent.take([release()])
        state, why = await ended(site, 2)
    assert (state, "(exit-code): a person must look" in why) == (FAILED, True)


async def test_a_unit_that_nobody_named_is_refused(site):
    site.sees(serving(owner=Owner(kind="systemd-unit", name="sshd.service", uid=0)))
    async with site.running():
        site.agent.take([drain()])
        assert (await ended(site, 1))[0] is REFUSED


async def test_what_no_unit_runs_is_refused(site):
    site.sees(serving(owner=Owner(kind="slurm", name="job-1", uid=0)))
    async with site.running():
        site.agent.take([drain()])
        assert (await ended(site, 1))[0] is REFUSED


async def test_a_stop_that_systemd_refuses_is_told_and_leaves_nothing_to_start(site):
    site.systemd.breaks = "Unit is not loaded"
    async with site.running():
        site.agent.take([drain()])
        assert await ended(site, 1) == (REFUSED, "Unit is not loaded")
        site.systemd.breaks = None
        site.agent.take([release()])
        assert (await ended(site, 2))[1] == "no unit of it is down by us"


async def test_a_release_waits_for_a_helper_that_is_away(site):
    async with site.running():
        await stopped(site)
        site.helper.gone = True
        site.agent.take([release()])
        await until(lambda: site.book.of(REPLICA).key == ("a-2", "1.2"))
        site.helper.gone = False
        assert (await ended(site, 2))[0] is DONE
    assert site.systemd.told == ["stop", "start"]


# -- restart ------------------------------------------------------------------------------------------------


async def test_a_restart_is_systemds_and_that_it_serves_is_for_others_to_see(site):
    async with site.running():
        assert site.agent.takes(restart())
        site.agent.take([restart()])
        assert await ended(site, 1) == (ActionState.RUNNING, "systemd restarts vllm@0.service")
    assert site.systemd.told == ["restart"]


async def test_systemds_own_restart_is_not_disturbed(site):
    site.systemd.does("start", active="activating")
    async with site.running():
        site.agent.take([restart()])
        state, why = await ended(site, 1)
    assert (state, "activating" in why) == (REFUSED, True)
    assert site.systemd.told == []


async def test_a_restart_of_a_replica_of_ours_is_not_for_it(site):
    assert not site.agent.takes(restart(replica="chat-1"))
    assert not site.agent.takes(Order(id="a-1", of=ActionKind.RESET_GPU, token="1.1", ttl_s=1.0))


# -- once over crashes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(1, 9))
async def test_an_agent_that_is_killed_anywhere_stops_and_starts_it_once(site, dies_at, after):
    orders = (drain(), release())
    site.helper.dies_at, site.helper.after = dies_at, after
    for one in orders:
        site.agent.take([one])
        async with site.running():
            await until(lambda one=one: site.outcome(one.id) or not site.agent._tasks)
        if site.outcome(one.id) is None:  # killed: the next agent goes by the disk
            site.again()
            site.agent.take([one], old=True)
            async with site.running():
                assert (await until(lambda one=one: site.outcome(one.id)))[0] in {GONE, DONE}
        site.sees(*([] if one.of is ActionKind.DRAIN else [serving(pid=200)]))
    assert site.systemd.told == ["stop", "start"]
    assert site.systemd.runs[UNIT].active == "active"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(1, 4))
async def test_an_agent_that_is_killed_anywhere_restarts_it_once(site, dies_at, after):
    site.helper.dies_at, site.helper.after = dies_at, after
    site.agent.take([restart()])
    async with site.running():
        await until(lambda: site.outcome("a-1") or not site.agent._tasks)
    site.again()
    site.agent.take([restart()], old=True)
    async with site.running():
        assert (await ended(site, 1))[0] is ActionState.RUNNING
    assert site.systemd.told == ["restart"]


async def test_an_order_that_comes_again_is_answered_and_not_done_again(site):
    async with site.running():
        await stopped(site)
        site.told.clear()
        site.agent.take([drain()])
        assert site.outcome("a-1")[0] is GONE
    assert site.systemd.told == ["stop"]


async def test_an_order_older_than_one_that_was_begun_is_stale(site):
    async with site.running():
        await stopped(site)
        site.agent.take([restart(0)])
        assert site.outcome("a-0")[0] is REFUSED
    assert site.systemd.told == ["stop"]


async def test_an_order_of_before_this_agent_that_was_never_begun_is_not_begun(site):
    site.agent.take([drain()], old=True)
    assert site.outcome("a-1") == (FAILED, "the agent ended before it had begun")


async def test_a_boot_is_the_end_of_what_ran_and_what_we_stopped_is_started_again(site):
    site.systemd.slow = True
    async with site.running():
        site.agent.take([drain()])
        await until(lambda: site.systemd.told == ["stop"])
    site.boot = "boot-2"
    site.systemd.does("stop", invocation="")
    site.sees()
    site.again()
    site.agent.take([drain()], old=True)
    async with site.running():
        assert await ended(site, 1) == (GONE, "the node has booted since")
        site.agent.take([release()])
        assert (await ended(site, 2))[0] is DONE
    assert site.systemd.told == ["stop", "start"]


def test_the_book_forgets_what_has_ended_and_never_what_is_down(tmp_path):
    book = UnitBook(tmp_path / "units.json")
    for number in range(KEPT + 10):
        of = drain(number + 1, replica=f"r{number}")
        book.put(Entry(order=of, boot_id="b", taken_at=0.0, step=Step.ENDED, down=number == 0))
    again = UnitBook(tmp_path / "units.json")
    assert again.of("r0") is not None
    assert again.of("r1") is None
    assert again.of(f"r{KEPT + 9}") is not None


def test_a_book_that_cannot_be_read_is_not_guessed(tmp_path):
    path = tmp_path / "units.json"
    path.write_text("{")
    with pytest.raises(InputError, match="remove the file"):
        UnitBook(path)
