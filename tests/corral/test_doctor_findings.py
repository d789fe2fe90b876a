"""What the doctor concludes: facts in, findings out."""

import msgspec
import pytest

from corral.doctor.facts import Facts, SeenGpu, Unit
from corral.doctor.finding import Finding, Verdict
from corral.doctor.findings import findings

WHOLE = Facts(
    user="corral-agent", config="/etc/corral/agent.toml", level="observe", package="13.580.82", module="580.95.05",
    library="580.95.05", nvml_spoke=True, bus_gpus=("0000:5d:00",), devices={"/dev/nvidiactl": True},
    gpus=(SeenGpu("GPU-1", "NVIDIA H100 80GB HBM3", frozenset({"power_w", "sm_active_ratio"}), (), 1),),
    services={
        "corral-agent.service": Unit(active=True), "nvidia-persistenced.service": Unit(active=True, restarts=0),
        "nvidia-fabricmanager.service": Unit(active=True, restarts=0),
    },
    bus_switches=4, state_dir="/var/lib/corral/agent", state_writable=True, state_filesystem="ext4",
    host={"state_available_bytes": 2**40, "clock_synchronized": 1, "clock_max_error_s": 0.01},
    controller="https://c:7400", helper=False, ports={"mlx5_0": "ACTIVE"},
)  # fmt: skip


def told(**changes: object) -> dict[str, Finding]:
    """By *area/what*, the findings that differ from those of a node that has all."""
    before = set(findings(WHOLE))
    found = [one for one in findings(msgspec.structs.replace(WHOLE, **changes)) if one not in before]
    return {f"{one.area}/{one.what}": one for one in found}


def test_a_node_that_has_all_needs_nothing():
    assert [one for one in findings(WHOLE) if not one.verdict.is_fine] == []


@pytest.mark.parametrize(
    ("changes", "where", "verdict", "word"),
    [
        ({"config": None}, "agent/configuration", "missing", "agent.toml"),
        ({"config_error": "x: node: y"}, "agent/configuration", "wrong", "x: node: y"),
        ({"services_error": "FAILED: no bus"}, "agent/services", "unknown", "no bus"),
        ({"services": {}}, "agent/unit", "missing", "corral-agent.service"),
        ({"services": {"corral-agent.service": Unit(active=False)}}, "agent/unit", "wrong", "systemctl enable"),
        ({"bus_gpus": (), "gpus": ()}, "GPUs/on the bus", "missing", "no NVIDIA GPU"),
        ({"bus_gpus": ("a", "b")}, "GPUs/seen", "wrong", "2 on the PCI bus, 1 by the driver"),
        ({"gpus": (), "nvml_error": "HUNG: calls"}, "GPUs/seen", "unknown", "0 by the driver"),
        ({"package": None}, "driver/nvidia-ml-py", "missing", "pip install"),
        ({"package": "11.525.84"}, "driver/nvidia-ml-py", "wrong", "11.525.84"),
        ({"module": None}, "driver/versions", "missing", "modprobe"),
        ({"module": "570.86.10"}, "driver/versions", "wrong", "reload"),
        ({"nvml_error": "LIB_RM_VERSION_MISMATCH: reload it"}, "driver/NVML", "wrong", "reload it"),
        ({"nvml_spoke": False}, "driver/NVML", "unknown", "hang"),
        ({"devices": {"/dev/nvidia0": False}}, "driver/device files", "wrong", "may not open /dev/nvidia0"),
        ({"devices": {}}, "driver/device files", "missing", "persistenced"),
        ({"kmsg_error": "/dev/kmsg: denied"}, "kernel log//dev/kmsg", "missing", "CAP_SYSLOG"),
        ({"kmsg_error": "/dev/kmsg: denied", "journalctl": True}, "kernel log//dev/kmsg", "missing", "journal"),
        ({"kmsg_error": "x", "unit_capabilities": "cap_syslog"}, "kernel log//dev/kmsg", "ok", "unit"),
        ({"dcgm_error": "ENGINE_NOT_FOUND: start it"}, "DCGM/host engine", "missing", "start it"),
        ({"dcgm_off": True}, "DCGM/host engine", "absent", "switched off"),
        ({"exporter": "http://e", "exporter_error": "UNREACHABLE: no"}, "dcgm-exporter/http://e", "wrong", "no"),
        ({"exporter": "http://e"}, "dcgm-exporter/http://e", "ok", "read"),
        ({"exporter_unused": True}, "dcgm-exporter/port 9400", "absent", "dcgm_exporter"),
        ({"state_writable": False}, "node/state folder", "wrong", "may not write"),
        ({"state_writable": None}, "node/state folder", "unknown", "does not answer"),
        ({"state_filesystem": "tmpfs"}, "node/state folder", "wrong", "next boot"),
        ({"host": {"state_available_bytes": 5}}, "node/state folder", "wrong", "make room"),
        ({"host": {}}, "node/clock", "unknown", "timedatectl"),
        ({"host": {"clock_synchronized": 0}}, "node/clock", "missing", "chrony"),
        ({"host": {"clock_synchronized": 1, "clock_max_error_s": 7.0}}, "node/clock", "wrong", "7.0 s"),
        ({"ports": {"mlx5_0": "DOWN"}}, "node/network ports", "wrong", "mlx5_0"),
        ({"ports": {"mlx5_0": "ACTIVE", "eth1": None}}, "node/network ports", "ok", "eth1"),
        ({"controller_error": "401"}, "controller/https://c:7400", "wrong", "401"),
        ({"controller_error": "tls_ca: /x: [X509] PEM lib"}, "agent/TLS", "wrong", "tls_ca"),
        ({"controller_error": "c: certificate verify failed"}, "controller/https://c:7400", "wrong", "tls_ca must be"),
        ({"programs": {"plug-in nfs": "/opt/nfs: no such program"}}, "programs/plug-in nfs", "wrong", "/opt/nfs"),
        ({"programs": {"diag_program": None}}, "programs/diag_program", "ok", "there"),
        ({"level": "repair"}, "repairs/root helper", "missing", "corral-roothelper"),
        ({"units": True}, "repairs/root helper", "missing", "starts no replica"),
        ({"helper": True}, "repairs/root helper", "ok", "socket"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_named_with_what_to_do(changes, where, verdict, word):
    finding = told(**changes)[where]
    assert finding.verdict == Verdict(verdict)
    assert word in f"{finding.found} {finding.how}"
    assert finding.how or finding.verdict.is_fine, "whatever is amiss has a next step"


def gpu(name: str, *readings: str, refused: tuple[str, ...] = (), persistence: int | None = 1) -> SeenGpu:
    return SeenGpu("GPU-1", name, frozenset(readings), refused, persistence)


def test_a_board_without_gpm_needs_dcgm_or_an_exporter():
    a100 = (gpu("NVIDIA A100-SXM4-80GB", "power_w"),)
    assert told(gpus=a100, dcgm_error="BINDINGS_NOT_FOUND: x")["activity/GPM"].verdict is Verdict.MISSING
    assert told(gpus=a100)["activity/GPM"].verdict is Verdict.ABSENT
    by_exporter = told(gpus=a100, dcgm_error="BINDINGS_NOT_FOUND: x", exporter="http://e")
    assert "dcgm-exporter" in by_exporter["activity/GPM"].found


def test_counters_for_root_alone_matter_only_where_they_are_needed():
    assert "activity/profiling lock" not in told(profiling_needs_root=True)
    assert told(gpus=(gpu("NVIDIA A100", "power_w"),), profiling_needs_root=True)["activity/profiling lock"]


def test_readings_that_may_not_be_read_are_named():
    refused = told(gpus=(gpu("H100", "sm_active_ratio", refused=("sram_uncorrectable_lifetime",)),))
    assert "sram_uncorrectable_lifetime" in refused["driver/readings"].found


def test_services_are_missed_where_the_board_needs_them():
    ours = {"corral-agent.service": Unit(active=True)}
    assert told(services=ours)["services/nvidia-fabricmanager"].verdict is Verdict.MISSING
    assert told(services=ours, bus_switches=0)["services/nvidia-fabricmanager"].verdict is Verdict.ABSENT
    racks = told(gpus=(gpu("NVIDIA GB200", "sm_active_ratio"),))
    assert racks["services/nvidia-imex"].verdict is Verdict.MISSING
    stopped = {**WHOLE.services, "nvidia-persistenced.service": Unit(active=False)}
    assert told(services=stopped)["services/nvidia-persistenced"].verdict is Verdict.WRONG


def test_persistence_mode_without_its_service_is_enough():
    services = {name: unit for name, unit in WHOLE.services.items() if "persistenced" not in name}
    assert told(services=services)["services/nvidia-persistenced"].verdict is Verdict.OK
    off = told(services=services, gpus=(gpu("H100", "sm_active_ratio", persistence=0),))
    assert off["services/nvidia-persistenced"].verdict is Verdict.MISSING


def test_gpus_of_virtual_machines_are_not_missed():
    assert told(bus_gpus=("a", "b"), passed_on=1)["GPUs/seen"].verdict is Verdict.OK


def test_a_virtual_node_is_not_asked_for_hardware():
    virtual = told(virtual=True, bus_gpus=(), gpus=(), kmsg_error="x")
    assert virtual["GPUs/virtual"].verdict is Verdict.OK
    assert "kernel log//dev/kmsg" not in virtual
