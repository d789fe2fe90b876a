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


@pytest.mark.parametrize(("status", "recovery"), [("0x1c", "contact_support"), ("0x56", "investigate")])
def test_a_start_that_no_reboot_helps_is_a_persons(status, recovery):
    line = f"NVRM: GPU {pci(2)}.0: RmInitAdapter failed! (0x24:{status}:1471)"
    (event,) = events(Bench().see(record(1.0, line)))
    assert (event.code, event.recovery) == ("gpu_init_failed", recovery)


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


def firmware(severity, gpu):
    head = "{1}[Hardware Error]: "
    said = ("Hardware error from APEI Generic Hardware Error Source: 1", f"event severity: {severity}",
            "  section_type: PCIe error", f"  device_id: {pci(gpu)}.0")  # fmt: skip
    return [head + line for line in said]


@pytest.mark.parametrize(("said", "severity"), [("fatal", Severity.ERROR), ("corrected", Severity.INFO)])
def test_a_pcie_error_that_firmware_reports_is_one_of_the_gpu_that_it_names(said, severity):
    (event,), _ = seen(*firmware(said, 4))
    assert (event.code, event.gpu, event.severity, event.count) == ("aer", uuid(4), severity, 1)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (f"{PORT}DPC: containment event, status:0x200d, ERR_FATAL received from {pci(2)}.0", pci(2)),
        (f"{PORT}DPC: containment event, status:0x1f01 source:0x0000", "0000:00:03"),
    ],
)
def test_a_link_that_the_port_cut_off_to_contain_an_error_is_told_where_it_is(line, place):
    (event,), _ = seen(line, f"{PORT}DPC: unmasked uncorrectable error detected")
    assert (event.code, event.pci, event.severity) == ("aer", place, Severity.ERROR)


def test_an_error_that_names_nobody_is_of_the_port_that_reports_it_and_counts_once():
    (event,), _ = seen(
        f"{PORT}AER: Multiple Correctable error message received from 0000:00:00.0",
        f"{PORT}PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
    )
    assert (event.pci, event.count) == ("0000:00:03", 1)


@pytest.mark.parametrize(
    ("line", "outcome", "severity"),
    [
        (f"{PORT}pciehp: Slot(3): Link Down", "link_down", Severity.WARNING),
        (f"nvidia {pci(2)}.0: can't change power state from D3cold to D0 (config space inaccessible)",
         "inaccessible", Severity.ERROR),
        (f"nvidia {pci(2)}.0: Unable to change power state from D3cold to D0, device inaccessible",
         "inaccessible", Severity.ERROR),
    ],
)  # fmt: skip
def test_a_slot_or_a_gpu_that_is_no_longer_there_is_told(line, outcome, severity):
    (event,), _ = seen(line)
    assert (event.code, event.fields["outcome"], event.severity) == ("aer", outcome, severity)


@pytest.mark.parametrize("gone", ["xhci_hcd", "snd_hda_intel", "vfio-pci"])
def test_another_driver_that_finds_its_device_gone_says_nothing_of_the_gpu(gone):
    assert seen(f"{gone} {pci(2)}.1: can't change power state from D3cold to D0 (config space inaccessible)")[0] == []


@pytest.mark.parametrize(
    "probe",
    [
        f"nvidia: probe of {pci(3)}.0 failed with error -1",
        f"nvidia {pci(3)}.0: probe with driver nvidia failed with error -1",
    ],
)
def test_a_gpu_whose_memory_is_not_mapped_did_not_start_and_a_person_must_look(probe):
    found, _ = seen(
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
        f"NVRM: BAR1 is 0M @ 0x0 (PCI:{pci(3)}.0)",
        probe,
    )
    assert {(e.code, e.gpu, e.count, e.recovery) for e in found} == {
        ("gpu_init_failed", uuid(3), 1, Recovery.INVESTIGATE)
    }
    assert found[-1].fields["reason"] == "BAR1 is not mapped"


def test_a_probe_that_failed_because_the_gpu_is_off_the_bus_points_to_that():
    bench = Bench()
    root = events(bench.see(fallen(1.0, 3)))[0]
    (failed,) = events(bench.see(record(1.2, f"nvidia: probe of {pci(3)}.0 failed with error -1")))
    assert (failed.code, failed.cause) == ("gpu_init_failed", root.id)


def test_a_dimm_and_a_page_are_told_apart():
    found, _ = seen(
        "EDAC MC3: 1 CE memory read error on DIMM_A1 (channel:2)",
        "EDAC MC3: 1 UE memory read error on DIMM_B1 (channel:2)",
        "Memory failure: 0x12345: recovery action for dirty LRU page: Recovered",
    )
    assert [(e.fields.get("dimm"), e.severity) for e in found] == [
        ("DIMM_A1", Severity.WARNING),
        ("DIMM_B1", Severity.ERROR),
        (None, Severity.ERROR),
    ]


def test_an_adapter_that_refuses_a_command_is_a_warning_and_one_that_is_dead_an_error():
    found, _ = seen(
        "mlx5_core 0000:2a:00.0: ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2)",
        "mlx5_core 0000:2b:00.0: device's health compromised - reached miss count",
    )
    assert [(e.code, e.pci, e.severity) for e in found] == [
        ("nic_command_failed", "0000:2a:00", Severity.WARNING),
        ("nic_command_failed", "0000:2b:00", Severity.ERROR),
    ]


def test_one_fall_of_a_port_is_information_in_the_log_too():
    (event,), _ = seen("mlx5_core 0000:5c:00.0 mlx5_1: Port: 1 Link DOWN")
    assert (event.code, event.device, event.severity, event.gpu) == ("nic_flap", "nic:mlx5_1", Severity.INFO, None)


def test_an_adapter_that_answers_no_commands_is_an_error_and_one_that_refuses_one_is_a_warning():
    for said, severity in (("Admin queue is closed", Severity.ERROR), ("Failed to submit command", Severity.WARNING)):
        (event,), _ = seen(f"efa 0000:a0:1b.0 rdmap160s27: {said}")
        assert (event.code, event.severity, event.recovery) == ("nic_command_failed", severity, Recovery.INVESTIGATE)
