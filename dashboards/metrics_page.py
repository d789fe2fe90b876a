"""docs/metrics.md, written from the metric catalogue. Pure: rows in, Markdown out."""

from collections.abc import Iterable

from vocab.metrics import CONTROLLER, ENGINE, GATEWAY, Metric
from vocab.metrics.agent import DEMANDED, ENGINE_FIGURES, GPU, SELF
from vocab.metrics.dcgm import DCGM, LABELS, XID

HEAD = """# Metrics

<!-- Generated from vocab/metrics by `python -m dashboards`; a test fails when this page is stale. -->

Every process answers `/metrics` in Prometheus' text format, and exports what stands here, no
more. Base units (seconds, bytes, watts, hertz; ratios from 0 to 1), `_total` for counters, `_info` for series
that are always 1 and only carry labels. Series of a GPU carry its UUID; its index stands on the info metric.
The engine's `vllm:` names mean what they mean in vLLM, so boards made for one serve the other.
"""

PROCESSES: tuple[tuple[str, str, tuple[Metric, ...]], ...] = (
    (
        "Agent",
        "One on each GPU node, port 7410: at most 75 series a GPU, 600 a node of eight. A scrape waits for no driver.",
        (*SELF, *ENGINE_FIGURES.values(), *GPU),
    ),
    (
        "Agent, on demand",
        'By `/metrics?full=1` (in Prometheus: `params: {full: ["1"]}`), beside all of the above.',
        DEMANDED,
    ),
    ("Controller", "Port 7400.", CONTROLLER),
    ("Engine", "One for each replica, port 7430 and up.", ENGINE),
    ("Gateway", "Port 7420.", GATEWAY),
)


DCGM_HEAD = f"""
## Agent, under dcgm-exporter's names

With `dcgm_names = true` in the agent's configuration, or `--dcgm-names`: the same figures under the names, units and
labels of NVIDIA's dcgm-exporter, so that boards made for it go on working. Labels:
{", ".join(f"`{label}`" for label in LABELS)}.
"""


def page() -> str:
    """The whole page."""
    parts = [f"\n## {title}\n\n{where}\n\n{_table(rows)}" for title, where, rows in PROCESSES]
    names = [f"| `{row.name}` | {row.kind.value} | {_cell(row.help)} |" for row in (*(row for row, _ in DCGM), XID)]
    table = "\n".join(["| name | kind | what it says |", "|---|---|---|", *sorted(names)])
    return HEAD + "".join(parts) + DCGM_HEAD + "\n" + table + "\n"


def _table(rows: Iterable[Metric]) -> str:
    lines = ["| name | kind | labels | what it says |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.name):
        labels = ", ".join(f"`{label}`" for label in row.labels)
        lines.append(f"| `{row.name}` | {row.kind.value} | {labels} | {_cell(row.help)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
