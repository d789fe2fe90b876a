"""Alerts about GPUs. Series come from each node's agent: ``node`` from discovery, ``gpu`` is the UUID."""

from alerts.alert import PLACE, Alert, Group, Severity, conditions, ticket_of_conditions
from vocab.catalogue.codes import XIDS
from vocab.events import Scope
from vocab.events import Severity as Harm

TICKET, INFO = Severity.TICKET, Severity.INFO
LONELY = {"xid:154"}  # it repeats what corral_gpu_recovery_action says
# NVML's clock reasons as bits of the mask
SOFTWARE_HEAT, HARDWARE, HARDWARE_HEAT, POWER_BRAKE = 0x20, 0x08, 0x40, 0x80


def _xids(*, certain: bool) -> str:
    found = (row for row in XIDS.values() if row.certain is certain and row.severity in {Harm.ERROR, Harm.CRITICAL})
    mine = (row for row in found if certain or (row.scope is not Scope.PROCESS and row.code not in LONELY))
    return "|".join(row.code.removeprefix("xid:") for row in mine)


def _clock_reason(bit: int) -> str:
    """1 where the bit is set now and was at each scrape of the last minute."""
    mask = "max by (node, gpu) (last_over_time(corral_gpu_clock_reasons_mask[2m]))"
    return f"floor({mask} / {bit}) % 2 == 1"


def _doing(word: str) -> str:
    return f'max by (node, gpu, by) (last_over_time(corral_gpu_activity{{doing="{word}"}}[2m])) > 0'


def _gauge(name: str) -> str:
    return f"max by (node, gpu) (last_over_time({name}[2m]))"


HARDWARE_SLOW = f"{_clock_reason(HARDWARE_HEAT)}\nor\n{_clock_reason(HARDWARE)}"
CERTAIN = f'sum by (node, gpu) (increase(corral_gpu_xid_errors_total{{xid=~"{_xids(certain=True)}"}}[15m])) > 0'
OTHERS = f'corral_gpu_xid_errors_total{{xid=~"94|{_xids(certain=False)}"}}'

GROUP = Group(
    subject="gpu",
    head="GPUs. Windows of 2 m look past a scrape gap of 90 s: a restart of an agent neither ends nor begins an alert.",
    rules=(
        # Out of service by a hold or by the agent's fence; or a certain Xid, enough alone to fence (a node that only
        # observes has no fence and no hold, so this speaks); or unreadable while another GPU of the node can be read.
        Alert(
            name="CorralGpuFault",
            severity=TICKET,
            expr=f"""{_gauge("corral_gpu_held")} > 0
or
{_gauge("corral_gpu_fenced")} > 0
or
{CERTAIN}
or
(
  max by (node, gpu) (max_over_time(corral_gpu_up[2m])) == 0
  and on (node)
  max by (node) (max_over_time(corral_gpu_up[2m])) == 1
)""",
            keep="2m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is faulty or out of service",
            says="It is held, fenced, had a certain Xid in the last 15 minutes, or cannot be read while its neighbours "
            "can. Run `corral explain {{ $labels.gpu }}`: it tells the evidence, what Corral did and what waits for "
            "you.",
        ),
        # A code that appears for the first time has no sample before it: then it counts from nothing.
        Alert(
            name="CorralGpuXid",
            severity=TICKET,
            expr=f"""sum by (node, gpu, xid) (increase({OTHERS}[15m])) > 0
or
count by (node, gpu, xid) ({OTHERS} unless {OTHERS} offset 15m) > 0""",
            keep="15m",
            summary="Xid {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node }}",
            says="An error of the hardware that is not certain enough to fence for by itself. Run "
            "`corral explain {{ $labels.gpu }}`; docs/signals.md says what the code means.",
        ),
        Alert(
            name="CorralEccUncorrectable",
            severity=TICKET,
            expr="sum by (node, gpu) (increase(corral_gpu_ecc_uncorrectable_total[1h])) > 0",
            keep="15m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} had uncorrectable memory errors",
            says="What ran there got an error; Corral drains and resets the GPU within its level. Run "
            "`corral explain {{ $labels.gpu }}`; a GPU that has them again after the reset is for the vendor.",
        ),
        Alert(
            name="CorralEccCorrectable",
            severity=TICKET,
            expr="sum by (node, gpu) (rate(corral_gpu_ecc_correctable_total[15m])) > 10",
            wait="30m",
            keep="1h",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} corrects more than 10 memory errors a second",
            says="Nothing is lost yet, and it is no reason to take it out: watch for remapped rows. "
            "`corral card {{ $labels.gpu }}` shows whether it is new.",
        ),
        Alert(
            name="CorralRemapPending",
            severity=TICKET,
            expr=f"{_gauge('corral_gpu_remap_pending')} > 0",
            wait="1h",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} waits for a reset to remap a row",
            says="Corral resets it once nothing uses it. To have it now: "
            "`corral drain {{ $labels.gpu }} --reason WHY`, then a reset.",
        ),
        Alert(
            name="CorralRemapFailed",
            severity=TICKET,
            expr=f"{_gauge('corral_gpu_remap_failed')} > 0",
            keep="15m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} could not remap a row: exchange it",
            says="No repair helps. Corral takes it out of service; `corral bundle {{ $labels.gpu }}` packs what the "
            "vendor asks for.",
        ),
        ticket_of_conditions(
            "CorralRetiredPages",
            ("retired_pages",),
            wait="5m",
            summary=f"{PLACE} has retired nearly all the pages that it may",
            says="It is for the vendor: `corral bundle {{ $labels.gpu }}` packs the evidence.",
        ),
        Alert(
            name="CorralRecoveryAction",
            severity=TICKET,
            expr=f"{_gauge('corral_gpu_recovery_action')} > 0",
            wait="15m",
            keep="5m",
            summary="The driver asks for a recovery of GPU {{ $labels.gpu }} of {{ $labels.node }}",
            says="It has asked for {{ $value }} (1 reset, 2 reboot, 3 and 4 drain first) for 15 minutes and not got "
            "it. `corral explain {{ $labels.gpu }}` says what Corral waits for.",
        ),
        Alert(
            name="CorralHardwareSlowdown",
            severity=TICKET,
            expr=HARDWARE_SLOW,
            wait="5m",
            keep="10m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is slowed down by its hardware",
            says="Heat or the board's own protection halves its clocks or worse; its replicas are slow. Look at "
            "airflow and power; `corral explain {{ $labels.gpu }}` shows since when.",
        ),
        Alert(
            name="CorralThermalSlowdown",
            severity=TICKET,
            expr=_clock_reason(SOFTWARE_HEAT),
            wait="15m",
            keep="15m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is slowed down by heat",
            says="The driver lowers its clocks to keep its temperature. See whether the node or its whole rack is hot; "
            "`corral explain {{ $labels.gpu }}` shows since when.",
        ),
        Alert(
            name="CorralPowerBrake",
            severity=TICKET,
            expr=_clock_reason(POWER_BRAKE),
            wait="2m",
            keep="10m",
            summary="The power brake slows down GPU {{ $labels.gpu }} of {{ $labels.node }}",
            says="Power supply or rack demands it: look at the feeds of that node. `corral explain {{ $labels.gpu }}` "
            "shows since when.",
        ),
        Alert(
            name="CorralGpuHot",
            severity=TICKET,
            expr=f"{_gauge('corral_gpu_temperature_celsius')} > {_gauge('corral_gpu_slowdown_celsius')} - 3",
            wait="10m",
            keep="10m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is at {{ $value }} °C, close to its slowdown",
            says="It is within 3 °C of the temperature at which the hardware slows it down. Look at the cooling before "
            "it does; `corral explain {{ $labels.gpu }}` shows what it is doing.",
        ),
        Alert(
            name="CorralGpuHung",
            severity=TICKET,
            expr=_doing("hung"),
            wait="5m",
            keep="5m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} reads busy and computes nothing",
            says="Utilization is full, SMs and power are idle: a kernel or a collective stands still. See its replica "
            "in `corral explain {{ $labels.gpu }}`; Corral restarts one that makes no step.",
        ),
        Alert(
            name="CorralGpuThrottled",
            severity=TICKET,
            expr=_doing("throttled"),
            wait="30m",
            keep="15m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} has been throttled by {{ $labels.by }} for "
            "half an hour",
            says="Its work goes on, slower than its peers'. `corral explain {{ $labels.gpu }}`; the cause is outside "
            "of the GPU: cooling, power, or a limit that was set.",
        ),
        Alert(
            name="CorralGpuStarved",
            severity=INFO,
            expr=_doing("starved"),
            wait="6h",
            keep="30m",
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} has waited for its host or for requests for six hours",
            says="It is paid for and not used: fewer replicas, larger batches or a faster host. "
            "`corral explain {{ $labels.gpu }}` shows what runs there.",
        ),
        Alert(
            name="CorralNvlinkDown",
            severity=TICKET,
            expr=f"{_gauge('corral_gpu_nvlinks_down')} > 0",
            wait="5m",
            keep="10m",
            summary="{{ $value }} NVLinks of GPU {{ $labels.gpu }} of {{ $labels.node }} are down",
            says="Groups over several GPUs are slow there or cannot run. `corral explain {{ $labels.gpu }}` names the "
            "links; a reset of all linked GPUs brings some back.",
        ),
        ticket_of_conditions(
            "CorralFabric",
            ("nvlink_errors", "nvlink_slow", "fabric_incomplete", "fabric_unhealthy"),
            wait="10m",
            summary=f"{PLACE} has trouble with NVLink or its fabric ({{{{ $labels.code }}}})",
            says="Look at the fabric manager and at what shares the switch; `corral explain {{ $labels.gpu }}` has the "
            "evidence.",
        ),
        ticket_of_conditions(
            "CorralPcie",
            ("pcie_width", "pcie_generation", "pcie_replays", "aer"),
            wait="15m",
            keep="15m",
            summary=f"{PLACE} has a bad PCIe link ({{{{ $labels.code }}}})",
            says="Loading and host traffic are slow there. Reseat the board or its riser at the next chance; "
            "`corral explain {{ $labels.gpu }}` shows since when.",
        ),
        ticket_of_conditions(
            "CorralSilentCorruption",
            ("silent_corruption",),
            wait="",
            summary=f"{PLACE} computes wrong results",
            says="Answers may have been wrong. Corral takes it out of service for good; `corral explain "
            "{{ $labels.gpu }}` says since when, `corral bundle {{ $labels.gpu }}` packs the evidence for the vendor.",
        ),
        ticket_of_conditions(
            "CorralGpuMemory",
            ("unknown_consumer", "memory_zombie", "memory_leak", "process_info_mismatch"),
            wait="30m",
            summary=f"Memory of {PLACE} is used and cannot be accounted for ({{{{ $labels.code }}}})",
            says="No replica is placed there meanwhile. `corral explain {{ $labels.gpu }}` names the process where "
            "there is one.",
        ),
        Alert(
            name="CorralProfilingBroken",
            severity=INFO,
            expr=conditions("profiling_broken", "counter_saturated"),
            wait="30m",
            keep="15m",
            summary=f"{PLACE} has no activity counters ({{{{ $labels.code }}}})",
            says="What it really does is unknown; serving is not touched. Another profiler may hold the lock: "
            "`corral doctor` on the node says so.",
        ),
    ),
)
