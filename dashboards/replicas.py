"""The serving board's lower half: each replica beside its peers, and beside what its hardware can do."""

from dashboards.board import Panels
from dashboards.panels import DOINGS, HALF, SHORT, THIRD, WIDE, Query, lines, rows
from dashboards.plots import scatter
from dashboards.recorded import FIRST_TOKEN

OURS = '{deployment="$deployment"}'


def outliers() -> Panels:
    """The replicas that leave the bundle."""
    first_token = f"{FIRST_TOKEN.name}{OURS}"
    return (
        rows(
            "Replicas that stand apart",
            "Times the deployment's median that a replica takes to the first token (95 %), the ten furthest. Good: all"
            " near 1. Twice the median is a slow GPU, a busy node, or a queue of its own.",
            Query(f"topk(10, {first_token} / scalar(quantile(0.5, {first_token})))", "{{replica}}"),
            {"replica": "Replica"},
            value="Times the median",
            width=THIRD,
        ),
        lines(
            "Time to first token by replica, 95 %",
            "As each engine measured it, the ten slowest. Good: one bundle. The one that leaves it has a slow GPU, a"
            " busy node or a queue of its own.",
            (Query(f"topk(10, {first_token})", "{{replica}}"),),
            "s",
            width=THIRD,
        ),
        lines(
            "Slowest steps by replica",
            "99.9 % of the last steps took less; the ten slowest. Good: one bundle.",
            (Query(f"topk(10, corral_engine_step_p999_seconds{OURS})", "{{replica}}"),),
            "s",
            width=THIRD,
        ),
        lines(
            "Queue by replica",
            "The ten longest. Good: one bundle. One that waits alone is stuck, or is sent more than its share.",
            (Query(f"topk(10, vllm:num_requests_waiting{OURS})", "{{replica}}"),),
            "none",
            width=THIRD,
        ),
        lines(
            "Under way at each replica",
            "As the gateway counts, the ten busiest. Good: spread evenly.",
            (Query(f"topk(10, corral_gateway_in_flight_requests{OURS})", "{{replica}}"),),
            "none",
            width=THIRD,
        ),
        lines(
            "Not admitted, by why",
            "Requests that engines refused. Good: none but while a replica loads or drains.",
            (Query(f"sum by (code) (rate(corral_engine_refused_requests_total{OURS}[$__rate_interval]))", "{{code}}"),),
            "none",
            width=THIRD,
        ),
    )


def roofs() -> Panels:
    """What each does beside what its hardware can do."""
    intensity = f"corral_engine_flops_per_byte_ratio{OURS}"
    peak = f"corral_engine_measured_flops_per_second{OURS}"
    worked = f"rate(corral_engine_step_seconds_sum{OURS}[$__rate_interval])"
    return (
        lines(
            "What its GPUs do",
            "The GPUs of this deployment's replicas by the one word for what each does with its time. Good while it"
            " answers: memory-bound. Launch-bound and starved GPUs are paid for and not used; throttled and hung ones"
            " are broken, whatever their utilization says.",
            (
                Query(
                    f"count by (doing) (corral_gpu_activity and on (node, gpu) corral_engine_gpu_info{OURS})",
                    "{{doing}}",
                ),
            ),
            "none",
            width=WIDE,
            height=SHORT,
            stacked=True,
            colors=DOINGS,
        ),
        scatter(
            "Roofline: what each replica does, under what it could",
            "A point each for a replica's operations a second while it computes, and for the roof over it: what its"
            " board can do at this many operations a byte, measured at its start. Left of the ridge the roof is memory"
            " bandwidth, right of it arithmetic. Good: points near their roof; a larger batch moves them to the right.",
            Query(intensity, "Operations a byte"),
            (
                Query(
                    f"sum by (replica) (rate(vllm:estimated_flops_per_gpu_total{OURS}[$__rate_interval]))"
                    f" / sum by (replica) ({worked} > 0)",
                    "done",
                ),
                Query(
                    f"corral_engine_measured_copy_bytes_per_second{OURS} * {intensity} < {peak} or {peak}",
                    "roof",
                ),
            ),
            "flops",
            by="replica",
        ),
        lines(
            "Steps against their floor",
            "Times that the latest steps took against what the roofs allow for them. Good: under 2. The rest is spent"
            " in launches, the host, or on a GPU that is slower than it was at its start.",
            (Query(f"topk(10, corral_engine_step_over_floor_ratio{OURS})", "{{replica}}"),),
            "none",
            width=HALF,
        ),
    )
