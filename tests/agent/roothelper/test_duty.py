"""What the helper does and refuses by itself, whoever asks."""

import threading
from pathlib import Path

import pytest

from agent.roothelper.duty import Duty
from agent.roothelper.limits import DAY_S, KEPT, LIMITS, Ledger
from agent.roothelper.requests import (
    OWN_UNIT,
    Able,
    AnyReply,
    Ask,
    Collect,
    Denied,
    Done,
    Failed,
    Reboot,
    ResetGpus,
    StartService,
    StopService,
    Survey,
    Surveyed,
)
from tests.agent.roothelper.machine import DCGM, FABRIC, GPUS, SERVICES, FakeMachine, holder
from vocab.clock import VirtualClock


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = FakeMachine()
        self.clock = VirtualClock(1_000_000.0)
        self.pause = folder / "PAUSE"

    @property
    def duty(self) -> Duty:
        """A helper that has just been started: only its files remember."""
        return Duty(self.machine, SERVICES, self.pause, Ledger(self.folder / "limits.json"), self.clock)

    def ask(self, request) -> AnyReply:
        return self.duty.perform(request)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_it_says_what_it_can_do_and_which_services_it_may_stop(bench):
    assert bench.ask(Ask()) == Able(verbs=bench.machine.verbs, services=SERVICES)


def test_a_survey_tells_holders_services_people_and_inhibitors(bench):
    bench.machine.held = [holder()]
    bench.machine.active = [DCGM]
    bench.machine.people = None
    assert bench.ask(Survey(gpus=GPUS[:1])) == Surveyed(holders=(holder(),), running=(DCGM,), users=None, inhibitors=())


def test_a_gpu_that_nobody_holds_is_reset(bench):
    assert bench.ask(ResetGpus(gpus=(*GPUS, GPUS[0]))) == Done()
    assert bench.machine.did == [f"reset {' '.join(GPUS)}"]


def test_a_gpu_that_anybody_holds_is_not_reset_and_the_holder_is_named(bench):
    bench.machine.held = [holder(pid=77, name="train", unit=DCGM)]
    reply = bench.ask(ResetGpus(gpus=GPUS[:1]))
    assert isinstance(reply, Denied)
    assert "pid 77 (train)" in reply.why
    assert bench.machine.did == []


@pytest.mark.parametrize("unit", [None, "slurmstepd.service", "user@1000.service", "nvidia-training.service"])
def test_a_node_with_foreign_gpu_work_is_not_rebooted(bench, unit):
    bench.machine.held = [holder(pid=77, name="train", unit=unit)]
    assert isinstance(bench.ask(Reboot()), Denied)
    assert bench.machine.did == []


@pytest.mark.parametrize("unit", [DCGM, OWN_UNIT, "nvidia-powerd.service"])
def test_services_vendor_daemons_and_our_own_processes_do_not_keep_a_node_up(bench, unit):
    bench.machine.held = [holder(unit=unit)]
    assert bench.ask(Reboot()) == Done()


@pytest.mark.parametrize(
    ("people", "inhibiting"), [(("anna is logged in",), ()), ((), ("apt forbids a shutdown",)), (None, ()), ((), None)]
)
def test_people_inhibitors_and_not_knowing_keep_a_node_up(bench, people, inhibiting):
    bench.machine.people, bench.machine.inhibiting = people, inhibiting
    assert isinstance(bench.ask(Reboot()), Denied)
    assert bench.machine.did == []


def test_a_service_that_is_not_on_the_list_is_left_alone(bench):
    for request in (StopService(unit="sshd.service"), StartService(unit="sshd.service")):
        assert isinstance(bench.ask(request), Denied)
    assert bench.machine.did == []


def test_fabric_manager_is_not_stopped_while_any_gpu_of_the_node_works(bench):
    bench.machine.held = [holder(gpu=GPUS[1], unit=OWN_UNIT)]
    assert isinstance(bench.ask(StopService(unit=FABRIC)), Denied)
    bench.machine.held = [holder(gpu=GPUS[1], unit=DCGM)]
    assert bench.ask(StopService(unit=FABRIC)) == Done()


def test_the_pause_file_stops_what_harms_and_nothing_else(bench):
    bench.pause.touch()
    for request in (ResetGpus(gpus=GPUS), Reboot(), StopService(unit=DCGM)):
        reply = bench.ask(request)
        assert isinstance(reply, Denied)
        assert str(bench.pause) in reply.why
    assert bench.ask(StartService(unit=DCGM)) == Done()
    assert isinstance(bench.ask(Survey(gpus=GPUS)), Surveyed)


def test_a_limit_holds_over_restarts_of_the_helper_and_ends_with_its_time(bench):
    limit = LIMITS["reset"]
    for _ in range(limit.most):
        assert bench.ask(ResetGpus(gpus=GPUS[:1])) == Done()
    refused = bench.ask(ResetGpus(gpus=GPUS[:1]))
    assert isinstance(refused, Denied)
    assert "not again for" in refused.why
    assert bench.ask(ResetGpus(gpus=GPUS[1:])) == Done()
    bench.clock.advance(limit.within_s)
    assert bench.ask(ResetGpus(gpus=GPUS[:1])) == Done()


def test_a_clock_that_was_set_back_neither_forgets_what_was_done_nor_locks_the_helper_for_ever(bench):
    limit = LIMITS["reset"]
    for _ in range(limit.most):
        bench.ask(ResetGpus(gpus=GPUS[:1]))
    bench.clock.step_wall(-10 * limit.within_s)
    assert isinstance(bench.ask(ResetGpus(gpus=GPUS[:1])), Denied)
    bench.clock.advance(limit.within_s)
    assert bench.ask(ResetGpus(gpus=GPUS[:1])) == Done()


@pytest.mark.parametrize("content", [b"", b"{", b'{"used": 3}'])
def test_a_ledger_that_cannot_be_read_allows_no_harm_and_is_not_written_over(bench, content):
    ledger = bench.folder / "limits.json"
    ledger.write_bytes(content)
    for request in (ResetGpus(gpus=GPUS), Reboot(), StopService(unit=DCGM), Collect(order="a-1", limit_s=5.0)):
        reply = bench.ask(request)
        assert isinstance(reply, Denied)
        assert str(ledger) in reply.why
    assert bench.machine.did == []
    assert bench.ask(StartService(unit=DCGM)) == Done()
    assert ledger.read_bytes() == content


def test_harmful_acts_never_overlap_and_a_question_waits_for_none_of_them(bench):
    duty, inside, go_on = bench.duty, threading.Event(), threading.Event()

    def slow(gpus):
        inside.set()
        assert go_on.wait(30)
        bench.machine.did.append("reset")
        return Done()

    bench.machine.reset = slow
    acts = [threading.Thread(target=duty.perform, args=(each,)) for each in (ResetGpus(gpus=GPUS), Reboot())]
    acts[0].start()
    assert inside.wait(30)
    acts[1].start()
    assert isinstance(duty.perform(Survey(gpus=())), Surveyed)
    assert bench.machine.did == []
    go_on.set()
    for each in acts:
        each.join()
    assert bench.machine.did == ["reset", "reboot"]


def test_what_breaks_in_the_machine_is_an_answer(bench):
    bench.machine.breaks = True
    assert isinstance(bench.ask(Collect(order="a-1", limit_s=5.0)), Failed)


def test_a_limit_that_cannot_be_written_down_lets_nothing_happen(bench, tmp_path):
    duty = Duty(bench.machine, SERVICES, bench.pause, Ledger(tmp_path / "no" / "folder"), bench.clock)
    assert isinstance(duty.perform(Reboot()), Failed)
    assert bench.machine.did == []


def test_subjects_that_count_no_more_are_forgotten_and_others_are_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "limits.json")
    assert ledger.charge("start_replica", tuple(f"chat/{number}" for number in range(KEPT)), 1000.0) is None
    assert ledger.charge("start_replica", ("late",), 1000.0 + DAY_S / 2) is None
    assert ledger.charge("start_replica", ("latest",), 1001.0 + DAY_S) is None
    assert len((tmp_path / "limits.json").read_bytes()) < 200
