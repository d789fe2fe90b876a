"""What the engine exports."""

from vocab.metrics.row import Kind, Metric

ENGINE: tuple[Metric, ...] = (Metric("corral_engine_build_info", Kind.INFO, "Version of this process.", ("version",)),)
