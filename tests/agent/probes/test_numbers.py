"""What is no number of 64 bits is no reading: it is absent, and the judge can still be stored."""

import pytest

from agent.judge import Judge
from agent.probes.numbers import storable
from tests.agent.made import inventory, uuid
from vocab.events import Mig
from vocab.observations import (
    DriverEvent,
    Exit,
    GpuProcess,
    GpuSample,
    HostSample,
    KernelRecord,
    Member,
    NodeSeen,
    ProcessSeen,
    ReplicaSeen,
    ServiceSeen,
)
from vocab.readings import Readings

HUGE = 10**20
XID = "NVRM: Xid (PCI:0000:10:00): 79, pid=9, name=app, GPU has fallen off the bus."
FIGURES = Readings(temperature_c=40, ecc_correctable=HUGE, nvlink_rx_bytes=HUGE)


@pytest.mark.parametrize(
    "observation",
    [
        KernelRecord(at=1.0, line=XID, seq=HUGE, facility=HUGE),
        KernelRecord(at=1.0, line=f"6,{HUGE - 1},5000000,-;{XID}"),
        GpuSample(at=1.0, gpu=uuid(0), readings=FIGURES, instances={"1/0": FIGURES}),
        GpuSample(at=1.0, gpu=uuid(0), processes=(GpuProcess(pid=HUGE, used_bytes=HUGE),)),
        HostSample(at=1.0, readings={"uptime_s": HUGE}, devices={"mlx5_0": {"state": 1, "link_downed": HUGE}}),
        ProcessSeen(at=1.0, pid=HUGE, state="D"),
        ProcessSeen(at=1.0, pid=5, parent=HUGE, state="D", used_bytes={uuid(0): HUGE}),
        ReplicaSeen(at=1.0, replica="r", pids=(HUGE, 5), step=HUGE, running=HUGE, exit=Exit(code=HUGE)),
        ReplicaSeen(at=1.0, replica="r", members=(Member(node="n1", gpu=uuid(0), mig=Mig(gi=HUGE)),)),
        ServiceSeen(at=1.0, unit="a", restarts=HUGE),
        DriverEvent(at=1.0, gpu=uuid(0), type="xid", data=HUGE),
        NodeSeen(at=1.0, boot_id="b1", expected_gpus=HUGE),
    ],
)
def test_huge_numbers_break_no_judge(observation):
    judge = Judge("n1")
    judge.observe(inventory(0.0, gpus=(0, 1)), 0.0)
    judge.observe(observation, 1.0)
    judge.tick(1000.0)
    Judge.restore(judge.snapshot())


def test_huge_number_is_absent_and_the_rest_is_kept():
    seen = ReplicaSeen(at=1.0, replica="r", pids=(HUGE, 5), step=HUGE, running=2)
    assert storable(seen) == ReplicaSeen(at=1.0, replica="r", pids=(5,), running=2)


def test_process_with_a_huge_id_is_none():
    assert storable(ProcessSeen(at=1.0, pid=HUGE, state="D")) is None


def test_what_can_be_stored_is_as_it_was():
    seen = GpuSample(at=1.0, gpu=uuid(0), readings=Readings(temperature_c=40.0))
    assert storable(seen) is seen
