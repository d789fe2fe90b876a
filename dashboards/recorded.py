"""Series that Prometheus computes beforehand, so that a board over 10,000 GPUs is as quick as one over ten.

A board asks these where it would otherwise read every GPU of the fleet for every point of a curve. What is counted by
the minute looks back one scrape further than its minute, so that no increment falls between two windows. ``increase``
takes what was counted in the 60 s between its first and its last scrape for that of all 75 s, 1.25 for each one: hence
the 0.8, rounded. A row that needs a fleet without faults to be empty is: "> 0".
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


def _mean(of: str) -> Recorded:
    return Recorded(f"corral:gpu_{of}:avg", f"avg(corral_gpu_{of}_ratio)")


UTILIZATION, SM_ACTIVE, DRAM_ACTIVE, TENSOR_ACTIVE = (
    _mean(of) for of in ("utilization", "sm_active", "dram_active", "tensor_active")
)
POWER = Recorded("corral:gpu_power_watts:sum", "sum(corral_gpu_power_watts)")
DOING = Recorded("corral:gpu_doing:count", "count by (doing) (corral_gpu_activity)")
TOKENS = Recorded("corral:generation_tokens:rate1m", "sum by (model_name) (rate(vllm:generation_tokens_total[1m]))")
XIDS = Recorded("corral:xids:increase1m", "sum by (node) (round(increase(corral_gpu_xids_total[1m15s]) * 0.8)) > 0")
XID_ERRORS = Recorded(
    "corral:xid_errors:increase1m",
    "sum by (node, xid) (round(increase(corral_gpu_xid_errors_total[1m15s]) * 0.8)) > 0",
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
