"""The node board: eight GPUs side by side, and the agent that watches them."""

from dashboards.board import INCIDENT, Panels, assemble, label_variable, new_board
from dashboards.panels import GREEN, HALF, RED, THIRD, WIDE, YELLOW, Query, lines, number, rows
from dashboards.plots import bars
from dashboards.recorded import new_xids

UID = "corral-node"
NODE = '{node="$node"}'
INDEX = f"* on (gpu) group_left (index) corral_gpu_info{NODE}"  # a UUID says nothing at a glance
GPU_LINK = ("Open this GPU", "/d/corral-gpu?var-node=$node&var-gpu=${__data.fields.GPU}")


def board() -> bytes:
    """The board's JSON."""
    made = new_board(UID, "Corral / Node", "One node: its GPUs side by side, and the agent that watches them.")
    made = made.with_variable(label_variable("node", "Node", "label_values(corral_gpu_info, node)"))
    return assemble(
        made,
        (
            ("Is it seen?", _seen()),
            ("What its GPUs do", _work()),
            ("What limits them", _limits()),
            ("What went wrong", _faults()),
            ("What runs there", _replicas()),
        ),
        (INCIDENT,),
    )


def _of_each(metric: str) -> Query:
    return Query(f"{metric}{NODE} {INDEX}", "GPU {{index}}")


def _grown(metric: str, of: str) -> Query:
    return Query(f"(increase({metric}{NODE}[$__rate_interval]) > 0) {INDEX}", f"{of}, GPU {{{{index}}}}")


def _seen() -> Panels:
    return (
        number(
            "Last report",
            "Seconds since the agent last reported to the controller. Good: under 15. Over a minute Corral is"
            " blind here:"
            " replicas go on serving, faults are not seen.",
            Query(f"max(corral_node_report_age_seconds{NODE})", "age"),
            "s",
            steps=((None, GREEN), (15, YELLOW), (60, RED)),
        ),
        number(
            "GPUs that answer",
            "Of those that are built in. Good: 100 %. Less: the table below says which, and in which state they are.",
            Query(f"sum(corral_gpu_up{NODE}) / count(corral_gpu_up{NODE})", "answer"),
            "percentunit",
            steps=((None, RED), (1, GREEN)),
        ),
        number(
            "Spool",
            "Events and readings that the controller has not confirmed. Good: a handful. It grows while the"
            " controller is"
            " away, and nothing is lost until it is full.",
            Query(f"sum(corral_agent_spool_items{NODE})", "items"),
            "none",
            steps=((None, GREEN), (1000, YELLOW), (50000, RED)),
        ),
        number(
            "Slowest driver call",
            "How long the slowest call into the driver is overdue. Good: 0. Minutes mean that a GPU hangs in the"
            " driver.",
            Query(f"max(corral_agent_call_seconds{NODE}) or 0 * max(corral_agent_gpus{NODE})", "overdue"),
            "s",
            steps=((None, GREEN), (5, YELLOW), (60, RED)),
        ),
    )


def _work() -> Panels:
    return (
        rows(
            "What each GPU does now",
            "One word a GPU for what it does with its time, and what throttles it. Good for a serving GPU:"
            " memory-bound."
            " No row: its counters do not say. A row leads to the GPU's board.",
            Query(f"corral_gpu_activity{NODE} * on (gpu) group_left () corral_gpu_activity_ratio{NODE}", "{{gpu}}"),
            {"gpu": "GPU", "doing": "Does", "by": "Throttled by"},
            value="Share",
            unit="percentunit",
            width=HALF,
            link=GPU_LINK,
        ),
        lines(
            "Utilization without work",
            "Utilization less the larger of SM and DRAM activity, of each GPU. Good: under 30 %. The one that"
            " stands apart"
            " from its peers is the one to look at.",
            (
                Query(
                    f"clamp_min(corral_gpu_utilization_ratio{NODE} -"
                    f" (corral_gpu_sm_active_ratio{NODE} > corral_gpu_dram_active_ratio{NODE}"
                    f" or corral_gpu_dram_active_ratio{NODE}), 0) {INDEX}",
                    "GPU {{index}}",
                ),
            ),
            "percentunit",
            most=1,
        ),
        lines(
            "SM activity",
            "Share of the SMs' cycles with work. Good: GPUs of one deployment close together.",
            (_of_each("corral_gpu_sm_active_ratio"),),
            "percentunit",
            most=1,
        ),
        lines(
            "DRAM activity",
            "Share of cycles in which the memory moved data. Good: high while answers are generated, and peers"
            " together.",
            (_of_each("corral_gpu_dram_active_ratio"),),
            "percentunit",
            most=1,
        ),
    )


def _limits() -> Panels:
    return (
        lines(
            "Degrees left",
            "Before a GPU slows itself down. Good: over 5, and peers within a few degrees: the one far under them has a"
            " fan, a filter or a heat sink of its own trouble.",
            (_of_each("corral_gpu_temperature_margin_celsius"),),
            "celsius",
            width=THIRD,
        ).min(-20),
        lines(
            "Power",
            "Good: it follows the work, and peers together.",
            (_of_each("corral_gpu_power_watts"),),
            "watt",
            width=THIRD,
        ),
        lines(
            "SM clock",
            "Good under load: near the highest and level. One GPU far under its peers while all work is slow_gpu.",
            (_of_each("corral_gpu_sm_clock_hertz"),),
            "hertz",
            width=THIRD,
        ),
    )


def _faults() -> Panels:
    return (
        bars(
            "Xid errors",
            "New errors, by GPU and code. Good: none.",
            (
                Query(
                    f"({new_xids('corral_gpu_xid_errors_total', '$__interval', NODE)} > 0) {INDEX}",
                    "Xid {{xid}} GPU {{index}}",
                ),
            ),
            width=THIRD,
        ),
        lines(
            "Memory errors",
            "Good: no uncorrected ones; corrected ones rare.",
            (
                _grown("corral_gpu_ecc_uncorrectable_total", "uncorrected"),
                _grown("corral_gpu_ecc_correctable_total", "corrected"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Links",
            "NVLinks that are down, errors of all NVLinks, PCIe packets sent again. Good: 0; replays may flicker.",
            (
                Query(f"(corral_gpu_nvlinks_down{NODE} > 0) {INDEX}", "NVLinks down, GPU {{index}}"),
                _grown("corral_gpu_nvlink_errors_total", "NVLink errors"),
                _grown("corral_gpu_pcie_replays_total", "PCIe replays"),
            ),
            "none",
            width=THIRD,
        ),
        rows(
            "States",
            "Of each GPU of this node, as the controller shows it. Good: healthy.",
            Query(f"corral_gpu_state{NODE} == 1", "{{gpu}}"),
            {"gpu": "GPU", "state": "State"},
            width=WIDE,
            link=GPU_LINK,
        ),
    )


def _replicas() -> Panels:
    return (
        lines(
            "Replicas by phase",
            "Good: all ready. Stopped ones that stay are given up: `corral explain REPLICA` says why.",
            (Query(f"sum by (phase) (corral_agent_replicas{NODE})", "{{phase}}"),),
            "none",
            width=HALF,
            stacked=True,
        ),
        lines(
            "Requests in their engines",
            "In the batch and waiting, as the engines say. Good: a queue that comes and goes. A queue that stands while"
            " steps do not is a wedged engine.",
            (
                Query(f"corral_agent_engine_running_requests{NODE}", "{{replica}} run"),
                Query(f"corral_agent_engine_waiting_requests{NODE}", "{{replica}} wait"),
            ),
            "none",
            width=HALF,
        ),
    )
