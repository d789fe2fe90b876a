"""Series that Prometheus computes beforehand, so that a board over 10,000 GPUs is as quick as one over ten.

A board asks these where it would otherwise read every GPU of the fleet for every point of a curve. A row that needs a
fleet without faults to be empty is: "> 0".
"""

import json

import msgspec

from dashboards.panels import Query

HEAD = """\
# Written by: python -m dashboards. Change dashboards/recorded.py instead.
# What the boards ask of the whole fleet. Without these rules their fleet-wide panels stay empty.
groups:
"""


class Recorded(msgspec.Struct, frozen=True):
    """A series, by its name; whoever asks for it asks for ``name``."""

    name: str
    expr: str

    def of(self, selector: str = "") -> str:
        """It, of what ``selector`` (in braces) chooses."""
        return f"{self.name}{selector}"


def new_xids(counter: str, window: str, selector: str = "") -> str:
    """By how much a counter of Xids has grown in a window, for each of its series, exactly.

    ``increase`` extrapolates (three errors become four), and of a series that begins it knows nothing: a code that is
    not declared beforehand begins at 1. Here each window ends where the next one begins. A counter that begins, or
    begins anew, has grown by all that it says, if its agent was there before; else nobody knows when that was. Seven
    scrapes may fail. Counters at 0, as nearly all are, are left out before anything is matched.
    """
    now = f"(last_over_time({counter}{selector}[2m]) > 0)"
    before = f"(last_over_time({counter}{selector}[2m] offset {window}) > 0)"
    was_there = f"last_over_time(corral_gpu_xids_total{selector}[2m] offset {window})"
    return f"((({now} - {before}) >= 0 or {now}) and on (node, gpu) {was_there})"


def _mean(of: str) -> Recorded:
    return Recorded(f"corral:gpu_{of}:avg", f"avg(corral_gpu_{of}_ratio)")


UTILIZATION, SM_ACTIVE, DRAM_ACTIVE, TENSOR_ACTIVE = (
    _mean(of) for of in ("utilization", "sm_active", "dram_active", "tensor_active")
)
POWER = Recorded("corral:gpu_power_watts:sum", "sum(corral_gpu_power_watts)")
DOING = Recorded("corral:gpu_doing:count", "count by (doing) (corral_gpu_activity)")
TOKENS = Recorded("corral:generation_tokens:rate1m", "sum by (model_name) (rate(vllm:generation_tokens_total[1m]))")
XIDS = Recorded("corral:xids:increase1m", f"sum by (node) {new_xids('corral_gpu_xids_total', '1m')} > 0")
XID_ERRORS = Recorded(
    "corral:xid_errors:increase1m", f"sum by (node, xid) {new_xids('corral_gpu_xid_errors_total', '1m')} > 0"
)
FIRST_TOKEN = Recorded(
    "corral:replica_first_token_seconds:p95",
    "histogram_quantile(0.95, sum by (le, deployment, replica) (rate(vllm:time_to_first_token_seconds_bucket[2m])))",
)

GROUPS: dict[str, tuple[str, tuple[Recorded, ...]]] = {
    "corral-boards": ("15s", (UTILIZATION, SM_ACTIVE, DRAM_ACTIVE, TENSOR_ACTIVE, POWER, DOING, TOKENS)),
    "corral-boards-minute": ("1m", (XIDS, XID_ERRORS, FIRST_TOKEN)),
}
RECORDED: dict[str, Recorded] = {row.name: row for _, rows in GROUPS.values() for row in rows}


def rules_file() -> str:
    """The rules as the YAML that Prometheus reads."""
    lines = []
    for group, (interval, rows) in GROUPS.items():
        lines += [f"  - name: {group}", f"    interval: {interval}", "    rules:"]
        for row in rows:
            lines += [f"      - record: {row.name}", f"        expr: {json.dumps(row.expr)}"]
    return HEAD + "\n".join(lines) + "\n"


def recorded(row: Recorded, legend: str, by: str = "") -> Query:
    """A curve of it; ``by``: summed up over all else."""
    return Query(f"sum by ({by}) ({row.name})" if by else row.name, legend)
