"""What the agent exports."""

from vocab.metrics.row import Kind, Metric

AGENT: tuple[Metric, ...] = (Metric("corral_agent_build_info", Kind.INFO, "Version of this process.", ("version",)),)
