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
