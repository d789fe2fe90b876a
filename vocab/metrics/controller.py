"""What the controller exports."""

from vocab.metrics.row import Kind, Metric

CONTROLLER: tuple[Metric, ...] = (
    Metric("corral_controller_build_info", Kind.INFO, "Version of this process.", ("version",)),
)
