"""Processes of which the kernel says that they hang, or spin, in the driver."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import events, record

HUNG = "INFO: task python3:4242 blocked for more than 120 seconds."
SPINS = "watchdog: BUG: soft lockup - CPU#7 stuck for 23s! [python3:4242]"
BUILD = "d77db9053aae9deb06d908cd2319f68dd09798a6"


@pytest.mark.parametrize(("complaint", "state"), [(HUNG, "D"), (SPINS, "R")])
@pytest.mark.parametrize("module", ["nvidia", "nvidia_uvm", f"nvidia {BUILD}"])
def test_a_task_whose_trace_stands_in_the_driver_hangs_there(complaint, state, module):
    trace = record(1.1, f"RIP: 0010:os_acquire_mutex+0x4c/0x60 [{module}]")
    (event,) = events(Bench().see(record(1.0, complaint), trace))
    assert (event.code, event.pid, event.fields["state"]) == ("driver_hang", 4242, state)


@pytest.mark.parametrize("complaint", [HUNG, SPINS])
@pytest.mark.parametrize("trace", [" ext4_sync_file+0x4c [ext4]", "Modules linked in: nvidia_uvm(OE) nvidia(POE)"])
def test_a_task_that_hangs_elsewhere_is_none_of_ours(complaint, trace):
    assert events(Bench().see(record(1.0, complaint), record(1.1, trace))) == []


def test_a_tool_of_the_driver_that_spins_needs_no_trace():
    (event,) = events(Bench().see(record(1.0, SPINS.replace("python3", "nvidia-smi"))))
    assert (event.code, event.process) == ("driver_hang", "nvidia-smi")


OOPS = "BUG: unable to handle page fault for address: 0000000000001a81"
PROCESSOR = "CPU: 11 PID: 4242 Comm: python3 Tainted: P      D W  OE     6.8.0"
IN_DRIVER = "RIP: 0010:uvm_release+0x25/0xe0 [nvidia_uvm]"


@pytest.mark.parametrize(
    "head",
    [
        OOPS,
        "BUG: kernel NULL pointer dereference, address: 0000000000000040",
        "general protection fault, probably for non-canonical address 0x25b5f6: 0000 [#1] SMP NOPTI",
        "Oops: 0000 [#1] PREEMPT SMP PTI",
        "Unable to handle kernel paging request at virtual address 0000000000001a81",
    ],
)
@pytest.mark.parametrize("processor", [PROCESSOR, PROCESSOR.replace("PID", "UID: 0 PID")])
def test_a_process_that_crashed_in_the_driver_leaves_a_node_that_must_be_started_anew(head, processor):
    lines = [head, "#PF: supervisor read access in kernel mode", processor, IN_DRIVER, "Call Trace:", IN_DRIVER]
    (event,) = events(Bench().see(*(record(1.0 + n / 100, line) for n, line in enumerate(lines))))
    assert (event.code, event.pid, event.process) == ("driver_hang", 4242, "python3")
    assert (event.severity, event.recovery, event.fields["state"]) == ("error", "reboot_node", "crashed")


@pytest.mark.parametrize(
    "head",
    [
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 11",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "INFO: rcu_preempt detected stalls on CPUs/tasks:",
    ],
)
def test_a_processor_that_does_not_come_out_of_the_driver_spins_there(head):
    (event,) = events(Bench().see(record(1.0, head), record(1.1, PROCESSOR), record(1.2, IN_DRIVER)))
    assert (event.code, event.pid, event.fields["state"], event.severity) == ("driver_hang", 4242, "R", "warning")


@pytest.mark.parametrize(
    "lines",
    [
        (OOPS, PROCESSOR, "RIP: 0010:ext4_sync_file+0x4c [ext4]", " ? uvm_release+0x25/0xe0 [nvidia_uvm]"),
        (OOPS, PROCESSOR, "Modules linked in: nvidia_uvm(OE) nvidia(POE)"),
        ("traps: python3[4242] general protection fault ip:7f sp:7f error:0 in lib.so", PROCESSOR, IN_DRIVER),
        ("WARNING: CPU: 11 PID: 4242 at nvidia-uvm/uvm.c:1 uvm_open+0x1 [nvidia_uvm]", PROCESSOR, IN_DRIVER),
        (OOPS, PROCESSOR.replace("python3", "nvidia-smi"), "RIP: 0010:exit_thread+0x12/0xc0"),
    ],
)
def test_a_crash_elsewhere_and_a_warning_are_none_of_ours(lines):
    assert events(Bench().see(*(record(1.0 + n / 100, line) for n, line in enumerate(lines)))) == []


def test_a_trace_that_comes_later_is_of_something_else():
    assert events(Bench().see(record(1.0, OOPS), record(9.0, PROCESSOR), record(9.1, IN_DRIVER))) == []
