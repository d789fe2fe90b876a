"""Every code of readings can be reached by what a recording can hold, stands, and ends as its row says."""

import msgspec
import pytest

from agent.judge import Judge
from tests.agent.made import call, cleared, codes, events, identity, inventory, pci, replica, sample, source, uuid
from vocab.catalogue.codes import row
from vocab.events import Mig, Severity
from vocab.observations import (
    Check,
    DriverEvent,
    GpuProcess,
    GpuSample,
    HostSample,
    PciDevice,
    ProcessSeen,
    ServiceSeen,
)
from vocab.readings import LinkReadings
from vocab.states import ClearsOn

GIB = 2**30


def each(ats, index=0, **readings):
    return [sample(float(at), index, **readings) for at in ats]


def linked(at, index=0, errors=None, performance_state=None, **links):
    made = {n.removeprefix("n"): LinkReadings(**link) for n, link in links.items()}
    whole = sample(float(at), index, power_w=100.0, performance_state=performance_state)
    return msgspec.structs.replace(whole, links=made, link_errors=errors or {})


def unread(at, error, name="ecc_correctable_lifetime"):
    return msgspec.structs.replace(sample(float(at), 0, power_w=100.0), errors={name: error})


def with_processes(at, processes, index=0, **readings):
    listed = tuple(GpuProcess(pid=pid, used_bytes=used) for pid, used in processes)
    return msgspec.structs.replace(sample(float(at), index, **readings), processes=listed)


def host(at, devices=None, **readings):
    return HostSample(at=float(at), node="n1", readings=readings, devices=devices or {})


def mig(*names):
    return (identity(0, mig=tuple({"uuid": name, "gi": n, "ci": 0} for n, name in enumerate(names, 1))),)


def listed(at, gpus, **changes):
    return msgspec.structs.replace(inventory(float(at), **changes), gpus=gpus)


def at_work(at, index, clock, **more):
    return sample(float(at), index, sm_clock_hz=clock, utilization_ratio=0.9, clock_reasons=0, **more)


BUSY = {"utilization_ratio": 1.0, "power_w": 600.0, "power_limit_w": 700.0}
IDLE = {"utilization_ratio": 0.0, "memory_used_bytes": 9 * GIB}
WORKS = {"utilization_ratio": 1.0, "sm_active_ratio": 0.7, "power_w": 600.0, "power_limit_w": 700.0}
HUNG = {"utilization_ratio": 1.0, "sm_active_ratio": 0.05, "power_w": 70.0, "power_limit_w": 700.0}
FAST, SLOW = ({"state": 1, "speed_bytes_per_s": speed} for speed in (26.5e9, 13.2e9))
UP, DOWN = {"state": 1}, {"state": 0}
EIGHT = tuple(range(8))
VFIO = (PciDevice(pci=pci(7), class_="0x030200", driver="vfio-pci"),)
SEEN_ON_BUS = (PciDevice(pci="0000:99:00", class_="0x030200", driver="nvidia"),)
REPLICA_BAD = [replica(1.0, ready=True, error="UNKNOWN"), sample(2.0, 0, power_w=90.0)]

# code -> what opens it, and what ends it where a signal does
OPEN = {
    "gpu_lost": [sample(1.0, 0, error="GPU_IS_LOST")],
    "gpu_missing": [inventory(1.0, gpus=EIGHT[:7])],
    "gpu_count_mismatch": [inventory(1.0, expected_gpus=9)],
    "gpu_replaced": [listed(1.0, (*(identity(i) for i in EIGHT[:7]), identity(7, uuid="GPU-new")))],
    "gpu_removed": [inventory(1.0, gpus=EIGHT[:7], pci_devices=VFIO)],
    "gpu_requires_reset": [GpuSample(at=1.0, gpu=uuid(0), errors={"power_w": "RESET_REQUIRED"})],
    "recovery_action": [sample(1.0, 0, recovery_action=2)],
    "ecc_correctable_rate": [sample(t * 60.0, 0, ecc_correctable=t * 30_000) for t in range(5)],
    "ecc_uncorrectable": [sample(1.0, 0, ecc_uncorrectable=0), sample(2.0, 0, ecc_uncorrectable=1)],
    "sram_threshold": [sample(1.0, 0, sram_threshold_exceeded=1)],
    "remap_pending": [sample(1.0, 0, remap_pending=1)],
    "remap_failed": [sample(1.0, 0, remap_failed=1)],
    "retired_pages": [sample(1.0, 0, retired_pages_sbe=40, retired_pages_dbe=23)],
    "nvlink_down": [linked(1, n0=UP, n1=DOWN)],
    "nvlink_errors": [linked(1, n0={"replays": 7}), linked(11, n0={"replays": 8})],
    "nvlink_slow": [linked(t, n0=FAST, n1=SLOW, performance_state=0) for t in (1, 2, 3)],
    "power_over_limit": each((1, 60, 130), power_w=800.0, power_limit_w=700.0),
    "fabric_incomplete": each((0, 100, 299, 301), fabric_state=2),
    "fabric_unhealthy": [sample(1.0, 0, fabric_state=3, fabric_status=0, fabric_health_mask=0x10)],
    "pcie_width": [sample(1.0, 0, pcie_width=8, pcie_width_max=16)],
    "pcie_generation": each((1, 2, 3), pcie_generation=3, pcie_generation_max=5, performance_state=0),
    "pcie_replays": [sample(t * 60.0, 0, pcie_replays=t * 100, pcie_generation=5, pcie_width=16) for t in range(3)],
    "thermal_slowdown": each((1, 2, 3), clock_reasons=0x40, temperature_c=95.0, slowdown_c=90.0),
    "thermal_margin": each((0, 30, 60), margin_c=3.0),
    "power_brake": each((1, 2, 3), clock_reasons=0x88),
    "power_limit_low": [o for t in (1, 2, 3, 4) for i, w in enumerate((500.0, 700.0, 700.0))
                        for o in each((t,), i, power_limit_w=w)],
    "slow_gpu": [at_work(t, i, 600e6 if i == 0 else 1_900e6) for t in range(0, 200, 20) for i in range(4)],
    "probe_hung": [call(0.0, "started", "nvmlDeviceGetTemperature"), host(121)],
    "probe_slow": [call(0.0, "started", "nvmlDeviceGetTemperature"), host(11)],
    "driver_hang": [host(t, nvidia_d_state=1) for t in (1, 2, 3)],
    "probe_degraded": each(range(5), fan_ratio=40.0),
    "inforom_corrupted": [unread(t, "CORRUPTED_INFOROM") for t in (1, 2, 3)],
    "probe_permission": [source(1.0, "down", error="NO_PERMISSION")],
    "monitor_unreachable": [source(1.0, "down", error="TIMEOUT"), host(62)],
    "process_info_mismatch": [with_processes(t, (), memory_used_bytes=GIB, utilization_ratio=0.9) for t in (1, 2, 3)],
    "unknown_consumer": [with_processes(t, (), memory_used_bytes=30 * GIB) for t in (1, 2, 3)],
    "driver_library_mismatch": [source(1.0, "down", error="LIB_RM_VERSION_MISMATCH")],
    "driver_not_loaded": [inventory(1.0, gpus=(), driver=None), host(62)],
    "profiling_broken": each((1, 2, 3), graphics_active_ratio=0.0, **BUSY),
    "activity_contradiction": each(range(0, 140, 10), **HUNG),
    "counter_saturated": [host(1, {"mlx5_0": {"link_downed": 254}}), host(2, {"mlx5_0": {"link_downed": 255}})],
    "nic_down": [host(1, {"mlx5_0": {"state": 0}})],
    "nic_flap": [host(1, {"mlx5_0": {"link_downed": 1}}), host(30, {"mlx5_0": {"link_downed": 4}})],
    "service_flapping": [ServiceSeen(at=t, unit="a.service", restarts=n) for n, t in enumerate((0.0, 9.0, 20.0, 30.0))],
    "mig_reconfigured": [listed(1, mig("a", "b")), listed(2, mig("c"))],
    "mig_instance_missing": [listed(1, mig("a", "b")), listed(2, mig("a"))],
    "memory_leak": [with_processes(t * 300, ((9, GIB + t * GIB),), **IDLE) for t in range(8)],
    "container_device_access_lost": REPLICA_BAD,
    "replica_wrong_gpu": [listed(1, mig("MIG-a", "MIG-b")), replica(2.0, visible="MIG-c")],
    "silent_corruption": [Check(at=1.0, check="canary", gpu=uuid(0), result="problem")],
}  # fmt: skip
CLEAR = {
    "gpu_missing": [inventory(5.0)],
    "gpu_count_mismatch": [inventory(5.0, expected_gpus=8)],
    "recovery_action": [sample(5.0, 0, recovery_action=0)],
    "inforom_corrupted": each((5, 6, 7), ecc_correctable_lifetime=0),
    "nvlink_down": [linked(5, n0=UP, n1=UP)],
    "nvlink_errors": [linked(4_000, n0={"replays": 8})],
    "nvlink_slow": [linked(t, n0=FAST, n1=FAST, performance_state=0) for t in (5, 6, 7)],
    "power_over_limit": each((200, 230, 270), power_w=690.0, power_limit_w=700.0),
    "fabric_incomplete": [sample(400.0, 0, fabric_state=3, fabric_status=0)],
    "fabric_unhealthy": [sample(5.0, 0, fabric_health_mask=0x2A)],
    "pcie_width": each((5, 6, 7), pcie_width=16, pcie_width_max=16),
    "pcie_generation": [sample(5.0, 0, pcie_generation=5, pcie_generation_max=5)],
    "pcie_replays": each(range(180, 500, 60), pcie_replays=200, pcie_generation=5, pcie_width=16),
    "thermal_slowdown": each((5, 6, 7), clock_reasons=0),
    "thermal_margin": each((100, 130, 160), margin_c=30.0),
    "power_brake": [sample(5.0, 0, clock_reasons=0), host(304)],
    "power_limit_low": each((5, 6, 7), power_limit_w=700.0),
    "slow_gpu": [at_work(t, i, 1_900e6) for t in range(200, 300, 20) for i in range(4)],
    "probe_hung": [call(130.0, "returned", "nvmlDeviceGetTemperature")],
    "probe_slow": [call(12.0, "returned", "nvmlDeviceGetTemperature"), host(313)],
    "probe_degraded": each((5, 6, 7), fan_ratio=0.4),
    "probe_permission": [source(5.0, "up")],
    "monitor_unreachable": [source(70.0, "up")],
    "process_info_mismatch": [with_processes(t, (), memory_used_bytes=GIB, utilization_ratio=0.0) for t in (5, 6, 7)],
    "unknown_consumer": [with_processes(t, ((7, 29 * GIB),), memory_used_bytes=30 * GIB) for t in (5, 6, 7)],
    "driver_library_mismatch": [source(5.0, "up")],
    "driver_not_loaded": [inventory(70.0)],
    "profiling_broken": each((5, 6, 7), graphics_active_ratio=0.9, **BUSY),
    "activity_contradiction": each((200, 210, 220), **WORKS),
    "counter_saturated": [host(5, {"mlx5_0": {"link_downed": 0}})],
    "nic_down": [host(5, {"mlx5_0": {"state": 1}})],
    "nic_flap": [host(4_000, {"mlx5_0": {"link_downed": 4}})],
    "service_flapping": [host(631)],
    "mig_instance_missing": [listed(5, mig("a", "b"))],
    "memory_leak": [with_processes(3_000, (), **IDLE)],
    "container_device_access_lost": [replica(5.0, phase="starting")],
    "replica_wrong_gpu": [replica(5.0, visible="MIG-a")],
}  # fmt: skip


def played(observations):
    """A judge that has seen these, each after what was due before it."""
    judge, items = Judge("n1"), []
    for seen in [inventory(0.0), *observations]:
        while (due := judge.next_deadline()) is not None and due < seen.at:
            items += judge.tick(due)
        items += judge.observe(seen, seen.at)
    return judge, items


@pytest.mark.parametrize("code", OPEN)
def test_a_code_is_reached_and_stands_as_its_row_says(code):
    judge, items = played(OPEN[code])
    found = [event for event in events(items) if event.code == code]
    assert found, codes(items)
    known = row(code)
    assert known.source
    assert found[0].node == "n1"
    stands = any(standing.code == code for standing in judge._mind.board.open.values())
    assert stands is (known.condition and found[-1].severity is not Severity.INFO)


@pytest.mark.parametrize("code", [code for code in OPEN if row(code).condition])
def test_what_a_signal_ends_is_ended_by_it_and_the_rest_is_not(code):
    if row(code).clears_on is ClearsOn.SIGNAL:
        _, items = played([*OPEN[code], *CLEAR[code]])
        assert code in cleared(items)
    else:
        assert code not in CLEAR


@pytest.mark.parametrize(
    "code", [code for code in OPEN if row(code).condition and row(code).clears_on is not ClearsOn.PERSON]
)
def test_a_reboot_ends_what_a_person_need_not(code):
    judge, _ = played(OPEN[code])
    items = judge.observe(inventory(9_000.0, boot_id="boot-2", boot_at=8_900.0, driver="565.57.01"), 9_000.0)
    assert code in cleared(items)


@pytest.mark.parametrize("code", [code for code in OPEN if row(code).condition])
def test_it_is_said_once_while_nothing_changes(code):
    judge, _ = played(OPEN[code])
    last = OPEN[code][-1]
    again = msgspec.structs.replace(last, at=last.at + 1.0)
    more = judge.observe(again, again.at)
    assert code not in codes(more) or isinstance(last, (ServiceSeen, Check))


def test_an_incomplete_probe_is_told_from_its_peers():
    judge, items, at = Judge("n1"), [], 0.0
    judge.observe(inventory(0.0, gpus=(0, 1, 2), period_s=60.0), 0.0)
    for minute in range(1, 320):
        at = minute * 60.0
        while (due := judge.next_deadline()) is not None and due < at:
            items += judge.tick(due)
        for gpu in (0, 1, 2):
            if gpu or minute % 2 or minute >= 200:
                items += judge.observe(sample(at, gpu, power_w=90.0), at)
    found = [event for event in events(items) if event.code == "probe_incomplete"]
    assert [(event.gpu, event.at) for event in found] == [(uuid(0), "1970-01-01T02:00:00.000000Z")]
    assert "probe_incomplete" in cleared(items)


def test_a_driver_event_of_the_recovery_action_is_taken_like_the_reading():
    judge = Judge("n1")
    judge.observe(inventory(0.0), 0.0)
    items = judge.observe(DriverEvent(at=1.0, gpu=uuid(3), type="recovery_action", data=1), 1.0)
    (event,) = events(items)
    assert (event.code, event.gpu, event.recovery) == ("recovery_action", uuid(3), "reset_gpu")


def test_a_missing_instance_names_itself():
    _, items = played(OPEN["mig_instance_missing"])
    (event,) = [event for event in events(items) if event.code == "mig_instance_missing"]
    assert (event.mig, event.fields["instance"]) == (Mig(gi=2, ci=0), "b")


def test_a_tool_in_state_d_counts_once_the_kernel_would_complain():
    stuck = ProcessSeen(at=1.0, pid=7, name="nvidia-smi", state="D")
    assert "driver_hang" not in codes(played([stuck, host(100)])[1])
    assert "driver_hang" in codes(played([stuck, host(122)])[1])
    back = ProcessSeen(at=50.0, pid=7, name="nvidia-smi", state="S")
    assert "driver_hang" not in codes(played([stuck, back, host(500)])[1])


def test_a_gpu_that_a_reboot_has_not_brought_back_is_as_before():
    judge, _ = played([sample(1.0, 3, error="GPU_IS_LOST")])
    without = inventory(9_000.0, gpus=(0, 1, 2, 4, 5, 6, 7), boot_id="boot-2", boot_at=8_990.0)
    assert "gpu_lost" not in cleared(judge.observe(without, 9_000.0))
    assert "gpu_lost" in cleared(judge.observe(inventory(9_100.0, boot_id="boot-2", boot_at=8_990.0), 9_100.0))
