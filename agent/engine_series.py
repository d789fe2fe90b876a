"""What engines say of themselves, as they say it, by replica; absent where they do not, or not of late.

These are an engine's own counts: some never count what was aborted, some count one request several times. What users
saw is counted by the gateway.
"""

from collections.abc import Iterator

from agent.latest import Latest
from agent.series import Family
from vocab.metrics.agent import ENGINE_FIGURES


def said(latest: Latest, now: float) -> Iterator[Family]:
    """The figures of every replica that was heard."""
    heard = latest.engines(now)
    for name, row in ENGINE_FIGURES.items():
        figures = {(replica,): getattr(seen, name) for replica, seen in heard.items()}
        yield Family(row, {labels: float(value) for labels, value in figures.items() if value is not None})
