"""Xids that NVML, DCGM and checks report: events of their own only if the kernel does not tell of them."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import NODE, events, fallen, inventory, uuid, xid
from vocab.events import Flag, Mig, Severity
from vocab.observations import Check, DriverEvent, GpuIdentity

APP = "pid=7, name=a, Ch 00000001"


def pushed(at, number=79, **changes):
    usual = {"source": "nvml", "gpu": uuid(3), "type": "xid", "data": number}
    return DriverEvent(at=at, node=NODE, **(usual | changes))


def check(at, number=145, **changes):
    usual = {"check": "memory", "gpu": uuid(3), "result": "problem", "code": "DCGM_FR_XID_ERROR"}
    return Check(at=at, node=NODE, text=f"Detected XID {number} for GPU 3", fatal=True, **(usual | changes))


@pytest.mark.parametrize("source", ["nvml", "dcgm"])
def test_a_report_without_a_line_becomes_an_event_after_five_seconds(source):
    bench = Bench()
    assert events(bench.see(pushed(1.0, source=source)) + bench.at(5.9)) == []
    (event,) = events(bench.at(6.0))
    assert (event.code, event.gpu, event.source, event.severity) == ("xid:79", uuid(3), source, Severity.CRITICAL)


@pytest.mark.parametrize("line_at", [1.0, 3.0, 9.5])
def test_a_line_within_five_seconds_before_or_after_is_the_event(line_at):
    bench = Bench()
    both = sorted([pushed(5.0), fallen(line_at, 3)], key=lambda seen: seen.at)
    found = events(bench.see(*both) + bench.at(100.0))
    assert [(e.source, e.count, e.rev) for e in found] == [("kernel", 1, 1)]


def test_a_line_that_comes_too_late_is_the_same_fault():
    bench = Bench()
    found = events(bench.see(pushed(1.0)) + bench.see(fallen(8.0, 3)) + bench.at(200.0))
    assert {e.id for e in found} == {found[0].id}
    assert found[-1].count == 1
    assert {evidence.source for evidence in found[-1].evidence} == {"nvml", "kmsg"}


@pytest.mark.parametrize("number", [0, -1, 2_147_483_632, 9_223_372_036_854_775_794])
def test_a_blank_and_zero_are_no_xid(number):
    bench = Bench()
    found = events(bench.see(pushed(1.0, number), pushed(2.0, number, source="dcgm")) + bench.at(100.0))
    assert found == []


def test_two_libraries_tell_of_one_xid():
    bench = Bench()
    found = events(bench.see(pushed(1.0), pushed(2.0, source="dcgm")) + bench.at(100.0))
    assert [(e.source, e.count) for e in found] == [("nvml", 1)]


def test_another_gpus_line_answers_nothing():
    bench = Bench()
    found = events(bench.see(pushed(1.0), fallen(2.0, 4)) + bench.at(100.0))
    assert {(e.source, e.gpu) for e in found} == {("nvml", uuid(3)), ("kernel", uuid(4))}


def test_an_injected_line_answers_a_report_too():
    words = "(0x0253a1c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    bench = Bench()
    line = xid(1.0, 149, f"NETIR_LINK_EVT Fatal XC0 i1 Link 03 {words}", 3)
    found = events(bench.see(line, pushed(1.5, 149)) + bench.at(99.0))
    assert [e.injected for e in found] == [True]


def test_a_handle_that_could_not_be_resolved_blames_nobody():
    bench = Bench()
    (event,) = events(bench.see(pushed(1.0, gpu=None)) + bench.at(100.0))
    assert (event.gpu, event.scope, event.flags) == (None, "node", (Flag.LOOKUP_FAILED,))


def test_a_gpu_may_be_named_by_index_or_address():
    bench = Bench()
    by_address = pushed(1.0, gpu=None, pci="00000000:15:00.0")
    found = events(bench.see(pushed(1.0, gpu=None, index=2), by_address) + bench.at(99.0))
    assert {e.gpu for e in found} == {uuid(2), uuid(5)}


@pytest.mark.parametrize("kind", ["ecc", "clock", "recovery_action", "other"])
def test_other_kinds_of_report_are_no_xid(kind):
    bench = Bench()
    found = events(bench.see(pushed(1.0, type=kind)) + bench.at(100.0))
    assert not [event for event in found if event.code.startswith("xid:")]


@pytest.mark.parametrize(("gi", "known"), [(5, Mig(gi=5, ci=0)), (9, None), (0xFFFFFFFF, None)])
def test_an_instance_that_nobody_knows_belongs_to_its_gpu(gi, known):
    bench = Bench()
    split = GpuIdentity(uuid=uuid(3), index=3, pci="0000:13:00", mig=({"uuid": "MIG-1", "gi": 5, "ci": 0},))
    bench.see(inventory(0.5, boot_at=None, gpus=()))
    bench.judge.scene.gpus[split.uuid] = split
    (event,) = events(bench.see(pushed(1.0, 31, mig=Mig(gi=gi, ci=0))) + bench.at(100.0))
    assert (event.gpu, event.mig) == (uuid(3), known)


@pytest.mark.parametrize("order", ["line first", "check first"])
def test_a_check_is_a_second_witness_and_decides_nothing(order):
    words = "(0x0407b507 0x00000004 0x00000000 0x00000000 0x00000000 0x00000000)"
    line = xid(2.0, 145, f"RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 {words}", 3)
    bench = Bench()
    seen = (line, check(6.0)) if order == "line first" else (check(1.0), line)
    found = events(bench.see(*seen) + bench.at(100.0))
    assert {e.id for e in found} == {found[0].id}
    assert (found[-1].severity, found[-1].recovery, found[-1].count) == (Severity.WARNING, "none", 1)
    assert [evidence.source for evidence in found[-1].evidence] == ["kmsg", "check"]


def test_a_check_that_nothing_confirms_speaks_for_itself():
    bench = Bench()
    (event,) = events(bench.see(check(1.0, 79)) + bench.at(100.0))
    assert (event.code, event.source, event.gpu) == ("xid:79", "check", uuid(3))


@pytest.mark.parametrize("changes", [{"result": "pass"}, {"code": "DCGM_FR_LOW_BANDWIDTH"}])
def test_a_check_that_names_no_xid_is_not_ours(changes):
    bench = Bench()
    assert not [e for e in events(bench.see(check(1.0, **changes)) + bench.at(100.0)) if e.code.startswith("xid")]
