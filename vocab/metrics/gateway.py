"""What the gateway exports."""

from vocab.metrics.row import Kind, Metric

GATEWAY: tuple[Metric, ...] = (
    Metric("corral_gateway_build_info", Kind.INFO, "Version of this process.", ("version",)),
)
