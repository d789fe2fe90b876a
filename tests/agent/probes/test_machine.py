"""Records of the machine around the GPUs: PCIe errors, machine checks, starts that failed, killed processes."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import cleared, events, fallen, pci, record, uuid, xid
from vocab.events import Recovery, Severity

PORT = "pcieport 0000:00:03.0: "
OWN = f"nvidia {pci(2)}.0: PCIe Bus Error: severity={{}}, type=Transaction Layer, (Requester ID)"


def seen(*lines, gap=0.001):
    bench = Bench()
    items = bench.see(*(record(1.0 + n * gap, line) for n, line in enumerate(lines)))
    return events(items + bench.at(200.0)), bench


@pytest.mark.parametrize(
    ("said", "severity", "recovery"),
    [
        ("Corrected", Severity.INFO, Recovery.NONE),
        ("Uncorrected (Non-Fatal)", Severity.WARNING, Recovery.INVESTIGATE),
        ("Uncorrected (Fatal)", Severity.ERROR, Recovery.INVESTIGATE),
    ],
)
def test_the_lines_of_one_pcie_error_are_one_event_of_the_gpu_that_it_names(said, severity, recovery):
    found, _ = seen(
        f"{PORT}AER: {said} error received: {pci(2)}.0",
        OWN.format(said),
        f"nvidia {pci(2)}.0:   device [10de:2330] error status/mask=00004000/00000000",
        f"nvidia {pci(2)}.0:    [14] CmpltTO                (First)",
    )
    (event,) = found
    assert (event.code, event.gpu, event.count) == ("aer", uuid(2), 1)
    assert (event.severity, event.recovery) == (severity, recovery)


def test_an_error_that_only_the_device_reports_counts_as_well():
    found, _ = seen(*[OWN.format("Corrected")] * 3)
    assert found[-1].count == 3


def test_an_error_of_a_device_that_is_no_gpu_is_of_the_node():
    (event,), _ = seen(f"{PORT}AER: Uncorrected (Non-Fatal) error received: 0000:99:00.0")
    assert (event.gpu, event.pci, event.scope, event.flags) == (None, "0000:99:00", "node", ())


def test_pcie_errors_are_over_after_an_hour_without_one():
    bench = Bench()
    bench.see(record(1.0, f"{PORT}AER: Uncorrected (Non-Fatal) error received: {pci(2)}.0"))
    assert cleared(bench.at(3600.0)) == []
    assert cleared(bench.at(3602.0)) == ["aer"]


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 5: bea0000001000108", Severity.ERROR),
        ("mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 5: 9c00000001000108", Severity.WARNING),
        ("mce: [Hardware Error]: CPU 0: Machine Check Exception: 4 Bank 0: b2000000c0060001", Severity.ERROR),
    ],
)
def test_a_machine_check_is_as_bad_as_its_status_says(line, severity):
    (event,), _ = seen(line, "mce: [Hardware Error]: Machine check events logged")
    assert (event.code, event.severity, event.scope, event.gpu) == ("mce", severity, "node", None)


def test_a_gpu_that_does_not_start_is_one_event_however_often_it_is_tried():
    tries = [f"NVRM: GPU {pci(3)}.0: RmInitAdapter failed! (0x22:0x56:894)",
             f"NVRM: GPU {pci(3)}.0: rm_init_adapter failed, device minor number 3"] * 3  # fmt: skip
    found, _ = seen(*tries, gap=5.0)
    assert {(e.code, e.gpu, e.pci) for e in found} == {("gpu_init_failed", uuid(3), pci(3))}
    assert {e.id for e in found} == {found[0].id}
    assert found[0].fields["status"] == "0x56"


def test_a_start_that_failed_counts_though_an_old_driver_does_not_say_of_which_gpu():
    found, _ = seen(
        "NVRM: RmInitAdapter failed! (0x26:0xf:1290)", "NVRM: rm_init_adapter failed for device bearing minor number 1"
    )
    assert {(e.code, e.gpu, e.flags, e.count) for e in found} == {("gpu_init_failed", None, ("lookup_failed",), 1)}
    assert found[0].fields["meaning"] == "GPU is lost"


def test_an_error_that_lost_something_is_another_event_than_those_that_the_link_repaired():
    found, _ = seen(
        f"{PORT}AER: Corrected error received: {pci(2)}.0",
        f"{PORT}AER: Uncorrected (Fatal) error received: {pci(2)}.0",
    )
    assert [(e.severity, e.fields["severity"], e.count) for e in found] == [
        (Severity.INFO, "corrected", 1),
        (Severity.ERROR, "fatal", 1),
    ]


def test_a_start_that_asks_for_a_reset_gets_that_advice():
    (event,), _ = seen(f"NVRM: GPU {pci(3)}.0: RmInitAdapter failed! (0x25:0x62:1500)")
    assert (event.recovery, event.fields["meaning"]) == (Recovery.RESET_GPU, "reset required")


def test_a_start_that_fails_after_the_gpu_fell_off_points_to_that():
    bench = Bench()
    root = events(bench.see(fallen(1.0, 3)))[0]
    (failed,) = events(bench.see(record(5.0, f"NVRM: GPU {pci(3)}.0: RmInitAdapter failed! (0x22:0xf:894)")))
    assert failed.cause == root.id


def test_a_killed_process_is_one_event_of_its_two_lines():
    found, _ = seen(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/chat,task=python3,pid=4242,uid=0",
        "Out of memory: Killed process 4242 (python3) total-vm:99kB, anon-rss:2048kB, file-rss:0kB",
    )
    assert {(e.code, e.pid, e.process, e.count) for e in found} == {("oom_kill", 4242, "python3", 1)}


def test_a_note_on_suppressed_messages_adds_nothing_to_what_was_said_and_stands_for_it_alone():
    note = (
        f"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{pci(0)} (printing 1 of every 30).  It needs a reset."
    )
    timeout = (
        "pid=7, name=smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 10 (FREE)."
    )
    bench = Bench()
    both = events(bench.see(xid(1.0, 119, timeout), record(13.0, note)) + bench.at(200.0))
    assert {(e.code, e.count) for e in both} == {("xid:119", 1)}
    (alone,), _ = seen(note)
    assert (alone.code, alone.count, alone.flags, alone.recovery) == ("xid:119", 1, ("inferred",), Recovery.RESET_GPU)


UNITS = [
    (13, "Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Illegal Address"),
    (31, "Ch 1, intr 0. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_6 faulted @ 0x7f"),
]


@pytest.mark.parametrize(("code", "unit"), UNITS)
def test_errors_of_several_programs_on_one_unit_point_to_the_hardware_and_are_no_harsher(code, unit):
    found = events(Bench().see(*(xid(at, code, f"pid={at}, name=a, {unit}") for at in (100, 300, 500))))
    assert [event.fields.get("programs_on_unit") for event in found] == [None, 2, 3]
    assert found[-1].fields["suspect"] == "hardware"
    assert {event.severity for event in found} == {Severity.WARNING}


@pytest.mark.parametrize(("code", "unit"), UNITS)
def test_one_program_that_fails_again_and_again_points_to_itself(code, unit):
    found = events(Bench().see(*(xid(at, code, f"pid=7, name=a, {unit}") for at in (100, 300, 500))))
    assert not [event for event in found if "suspect" in event.fields]


@pytest.mark.parametrize(("stated", "recovery"), [("RST: No, D-RST: No", Recovery.RESTART_APP),
                                                  ("RST: Yes, D-RST: No", Recovery.RESET_GPU),
                                                  ("RST: No, D-RST: Yes", Recovery.DRAIN_AND_RESET)])  # fmt: skip
def test_what_the_driver_wants_wins_where_it_is_harsher(stated, recovery):
    (event,) = events(Bench().see(xid(1.0, 94, f"pid=7, name=a, Contained: SM (0x1). {stated}")))
    assert event.recovery is recovery
