"""The catalogue of every metric that Corral exports: one row a metric, one file a process.

Exporters build their collectors from these rows, dashboards and alerts are tested against them. Rules:
``corral_`` (engine: also vLLM's names, ``vllm:``), base units, ``_total`` for counters, ``_ratio``,
``_info``; at most six labels; never text, a pid or a time as a label; GPU series carry the UUID.
"""

from vocab.metrics.agent import AGENT
from vocab.metrics.controller import CONTROLLER
from vocab.metrics.engine import ENGINE
from vocab.metrics.gateway import GATEWAY
from vocab.metrics.row import Kind, Metric

METRICS: tuple[Metric, ...] = (*AGENT, *CONTROLLER, *ENGINE, *GATEWAY)

__all__ = ["AGENT", "CONTROLLER", "ENGINE", "GATEWAY", "METRICS", "Kind", "Metric"]
