"""docs/metrics.md, written from the metric catalogue. Pure: rows in, Markdown out."""

from collections.abc import Iterable

from vocab.metrics import AGENT, CONTROLLER, ENGINE, GATEWAY, Metric

HEAD = """# Metrics

<!-- Generated from vocab/metrics by `python -m dashboards`; a test fails when this page is stale. -->

Every process answers `/metrics` in Prometheus' text format or OpenMetrics, and exports what stands here, no
more. Base units (seconds, bytes, watts, hertz; ratios from 0 to 1), `_total` for counters, `_info` for series
that are always 1 and only carry labels. Series of a GPU carry its UUID; its index stands on the info metric.
The engine's `vllm:` names mean what they mean in vLLM, so boards made for one serve the other.
"""

PROCESSES: tuple[tuple[str, str, tuple[Metric, ...]], ...] = (
    ("Agent", "One on each GPU node, port 7410.", AGENT),
    ("Controller", "Port 7400.", CONTROLLER),
    ("Engine", "One for each replica, port 7430 and up.", ENGINE),
    ("Gateway", "Port 7420.", GATEWAY),
)


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n## {title}\n\n{where}\n\n{_table(rows)}" for title, where, rows in PROCESSES)


def _table(rows: Iterable[Metric]) -> str:
    lines = ["| name | kind | labels | what it says |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.name):
        labels = ", ".join(f"`{label}`" for label in row.labels)
        lines.append(f"| `{row.name}` | {row.kind.value} | {labels} | {_cell(row.help)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
