"""The catalogue: complete, consistent with itself, and right in the cases that matter."""

import pytest

from vocab.catalogue import persistence
from vocab.catalogue.codes import NAMED, ROWS, SXIDS, XIDS, row
from vocab.catalogue.persistence import Outlives
from vocab.catalogue.recovery import advice
from vocab.catalogue.sxids import renumbered, worst
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn

NAMES = """
    gpu_lost gpu_missing gpu_count_mismatch gpu_replaced gpu_requires_reset recovery_action ecc_correctable_rate
    ecc_uncorrectable sram_threshold remap_pending remap_failed retired_pages nvlink_down nvlink_errors
    fabric_incomplete fabric_unhealthy pcie_width pcie_generation pcie_replays aer thermal_slowdown thermal_margin
    power_brake power_limit_low probe_hung probe_slow probe_degraded probe_incomplete process_info_mismatch
    unknown_consumer driver_hang driver_library_mismatch driver_not_loaded version_drift profiling_broken
    activity_contradiction memory_leak memory_zombie stuck_in_kernel mig_reconfigured mig_instance_missing
    container_device_access_lost gpu_init_failed mce oom_kill monitor_unreachable probe_permission
    kernel_records_lost kernel_clock_skew counter_saturated service_flapping nic_down nic_flap replica_stalled
    replica_died replica_unhealthy replica_wrong_gpu replica_failed_cleanup collective_timeout crash_loop
    placement_black_hole silent_corruption slow_gpu lemon node_unknown node_lost too_much_sick
"""

# What the vendor's immediate bucket would be in our words; workflows have no single translation.
VENDOR = {
    "IGNORE": Recovery.NONE,
    "RESTART_APP": Recovery.RESTART_APP,
    "RESET_GPU": Recovery.RESET_GPU,
    "CONTACT_SUPPORT": Recovery.CONTACT_SUPPORT,
    "CHECK_MECHANICALS": Recovery.CONTACT_SUPPORT,
    "RESTART_BM": Recovery.REBOOT_NODE,
    "UPDATE_SWFW": Recovery.INVESTIGATE,
}


def test_every_public_xid_has_a_row():
    assert set(XIDS) == {*range(1, 178), 185}


def test_every_public_sxid_has_a_row():
    assert len(SXIDS) == 422
    assert min(SXIDS) == 10000
    assert max(SXIDS) == 30006


def test_every_named_code_has_a_row():
    assert set(NAMES.split()) <= set(NAMED)


@pytest.mark.parametrize("known", [*XIDS.values(), *SXIDS.values(), *NAMED.values()], ids=lambda known: known.code)
def test_row_is_whole(known):
    assert row(known.code) is known
    assert known.title
    assert known.source
    assert known.condition or known.severity is not Severity.CRITICAL, "a critical code opens a condition"
    assert not known.certain or (known.condition and known.severity is Severity.CRITICAL)


@pytest.mark.parametrize("known", [*XIDS.values(), *SXIDS.values(), *NAMED.values()], ids=lambda known: known.code)
def test_what_clears_a_condition_ends_the_fault_behind_it(known):
    """A signal may return at any time. A power cycle is a reboot to all who watch."""
    if not known.condition:
        return
    ended_by = {
        ClearsOn.SIGNAL: set(Outlives),
        ClearsOn.RESET: {Outlives.NOTHING, Outlives.WORK},
        ClearsOn.REBOOT: {Outlives.NOTHING, Outlives.WORK, Outlives.RESET, Outlives.REBOOT},
        ClearsOn.PERSON: set(Outlives),
    }
    assert known.outlives in ended_by[known.clears_on]


@pytest.mark.parametrize(
    ("code", "outlives"),
    [
        ("xid:13", Outlives.NOTHING),
        ("xid:63", Outlives.WORK),
        ("xid:64", Outlives.ALL),
        ("xid:79", Outlives.RESET),
        ("xid:95", Outlives.WORK),
        ("xid:110", Outlives.REBOOT),
        ("xid:161", Outlives.ALL),
        ("sxid:23001", Outlives.RESET),
        ("remap_pending", Outlives.WORK),
        ("remap_failed", Outlives.ALL),
        ("power_brake", Outlives.SIGNAL),
    ],
)
def test_what_a_fault_outlives(code, outlives):
    assert row(code).outlives is outlives


def test_what_stays_behind_is_told_of_codes_that_exist():
    assert set(persistence._REMAINS) | set(persistence._OUTLIVES) <= set(ROWS)


@pytest.mark.parametrize("known", XIDS.values(), ids=lambda known: known.code)
def test_xid_says_why_it_differs_from_the_vendor(known):
    follows = known.vendor is None or VENDOR.get(known.vendor) is known.recovery
    assert follows or known.differs


@pytest.mark.parametrize(
    ("xid", "severity", "recovery", "scope"),
    [
        (13, Severity.WARNING, Recovery.RESTART_APP, Scope.PROCESS),
        (31, Severity.WARNING, Recovery.RESTART_APP, Scope.PROCESS),
        (43, Severity.WARNING, Recovery.NONE, Scope.PROCESS),
        (45, Severity.WARNING, Recovery.INVESTIGATE, Scope.PROCESS),
        (48, Severity.CRITICAL, Recovery.DRAIN_AND_RESET, Scope.GPU),
        (62, Severity.CRITICAL, Recovery.RESET_GPU, Scope.GPU),
        (63, Severity.WARNING, Recovery.NONE, Scope.GPU),
        (64, Severity.CRITICAL, Recovery.RESET_GPU, Scope.GPU),
        (79, Severity.CRITICAL, Recovery.REBOOT_NODE, Scope.GPU),
        (92, Severity.WARNING, Recovery.NONE, Scope.GPU),
        (94, Severity.ERROR, Recovery.RESTART_APP, Scope.PROCESS),
        (95, Severity.CRITICAL, Recovery.RESET_GPU, Scope.GPU),
        (109, Severity.CRITICAL, Recovery.RESET_GPU, Scope.GPU),
        (119, Severity.CRITICAL, Recovery.RESET_GPU, Scope.GPU),
        (151, Severity.ERROR, Recovery.REBOOT_NODE, Scope.NODE),
    ],
)
def test_xid_advice(xid, severity, recovery, scope):
    known = row(f"xid:{xid}")
    assert (known.severity, known.recovery, known.scope) == (severity, recovery, scope)


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 92, 94])
def test_xid_of_one_process_or_a_note_never_fences_nor_stands(xid):
    assert not row(f"xid:{xid}").certain
    assert not row(f"xid:{xid}").condition


@pytest.mark.parametrize("xid", [48, 62, 64, 79, 95, 109, 119, 120, 140, 143])
def test_xid_that_condemns_a_gpu_is_certain(xid):
    assert row(f"xid:{xid}").certain


def test_lost_gpu_stands_until_a_reboot():
    assert row("xid:79").clears_on is ClearsOn.REBOOT


@pytest.mark.parametrize("code", ["xid:178", "xid:999", "xid:123456", "sxid:99999", "no_such_code"])
def test_unknown_code_warns_and_holds_nothing(code):
    known = row(code)
    assert (known.severity, known.recovery) == (Severity.WARNING, Recovery.INVESTIGATE)
    assert not known.condition
    assert not known.certain


@pytest.mark.parametrize(
    ("sxid", "severity", "recovery"),
    [
        (20034, Severity.CRITICAL, Recovery.RESET_GPU),
        (12028, Severity.WARNING, Recovery.RESET_GPU),
        (19084, Severity.WARNING, Recovery.RESET_GPU),
        (20009, Severity.WARNING, Recovery.INVESTIGATE),
        (22013, Severity.WARNING, Recovery.NONE),
        (23001, Severity.CRITICAL, Recovery.REBOOT_NODE),
        (10004, Severity.ERROR, Recovery.INVESTIGATE),
        (10005, Severity.INFO, Recovery.NONE),
    ],
)
def test_sxid_advice(sxid, severity, recovery):
    known = row(f"sxid:{sxid}")
    assert (known.severity, known.recovery, known.scope) == (severity, recovery, Scope.FABRIC)


@pytest.mark.parametrize(
    ("number", "text", "today"),
    [
        (28006, "MC TS crumbstore MCTO", 29006),  # R525 to R545
        (29006, "Red TS crumbstore RTO", 30006),
        (29006, "MC TS crumbstore MCTO", 29006),  # R550 and later
        (28001, "OSFP Thermal Warn Activated", 28001),
        (28006, None, 28006),
        (20034, "MC TS crumbstore MCTO", 20034),
    ],
)
def test_sxid_number_is_judged_by_the_text(number, text, today):
    assert renumbered(number, text) == today
    assert text is None or renumbered(number, text, 535) == today, "whatever the driver"


@pytest.mark.parametrize(("branch", "today"), [(520, 28001), (525, 29001), (545, 29001), (550, 28001), (None, 28001)])
def test_sxid_number_without_a_text_is_judged_by_the_driver(branch, today):
    assert renumbered(28001, None, branch) == today
    assert renumbered(20034, None, branch) == 20034


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("PMGR OVERT Threshold reached. Shutting Down", Severity.CRITICAL),
        ("Thermal Slowdown Engaged | PMGR WARN Threshold reached", None),
        (None, None),
    ],
)
def test_switch_that_turns_itself_off_is_critical_whatever_its_number(text, severity):
    assert worst(text) is severity


@pytest.mark.parametrize(
    ("action", "recovery"),
    [
        (0, Recovery.NONE),
        (1, Recovery.RESET_GPU),
        (2, Recovery.REBOOT_NODE),
        (3, Recovery.INVESTIGATE),
        (4, Recovery.DRAIN_AND_RESET),
        (5, Recovery.INVESTIGATE),
        (6, Recovery.RESET_GPU),
        (7, Recovery.REBOOT_NODE),
        (8, Recovery.INVESTIGATE),
        (None, Recovery.INVESTIGATE),
    ],
)
def test_recovery_action_of_the_driver(action, recovery):
    assert advice(action).recovery is recovery
