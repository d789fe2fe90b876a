"""What the step watch knows as metrics. Of an unknown board there is no series rather than a guess."""

from prometheus_client import Counter

from engine.health.step_watch import StepWatch
from engine.roofline import Bound, Cost
from wire.exposition import Exposition

_ESTIMATES = ("flops", "read_bytes", "write_bytes")


class RooflineMetrics:
    """The series of one engine's roofline; they begin when there is a watch."""

    def __init__(self, to: Exposition, labels: dict[str, str]) -> None:
        self.watch: StepWatch | None = None
        self._to = to
        self._estimates: list[Counter] = [
            to.counter(f"vllm:estimated_{name}_per_gpu_total").labels(**labels) for name in _ESTIMATES
        ]
        self._model = labels["model_name"]
        self._told = Cost()
        self._bounds = dict.fromkeys(Bound, 0)

    def begin(self, watch: StepWatch) -> None:
        """The model is there: what is known of its device from the start."""
        self.watch = watch
        for bound in Bound:
            self._to.counter("corral_engine_bound_steps_total").labels(bound.value)
        self._gauge("ridge_flops_per_byte_ratio", watch.peak.ridge)
        self._gauge("measured_copy_bytes_per_second", watch.measured.bytes_per_s)
        self._gauge("measured_flops_per_second", watch.measured.flops_per_s)

    def refresh(self) -> None:
        """Set all to what is true now."""
        if self.watch is None:
            return
        total, told = self.watch.total, self._told
        for counter, grown in zip(
            self._estimates,
            (total.flops - told.flops, total.read - told.read, total.written - told.written),
            strict=True,
        ):
            counter.inc(grown)
        self._told = total
        for bound, count in self.watch.bounds.items():
            self._to.counter("corral_engine_bound_steps_total").labels(bound.value).inc(count - self._bounds[bound])
            self._bounds[bound] = count
        found = self.watch.figures()
        self._gauge("mfu_ratio", found.mfu)
        self._gauge("mbu_ratio", found.mbu)
        self._gauge("copy_bandwidth_share_ratio", found.copy_share)
        self._gauge("flops_per_byte_ratio", found.intensity)
        self._gauge("step_over_floor_ratio", found.over_floor)
        self._gauge("step_over_usual_ratio", found.over_usual)

    def _gauge(self, name: str, value: float | None) -> None:
        if value is not None:
            self._to.gauge(f"corral_engine_{name}").labels(self._model).set(value)
