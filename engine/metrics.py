"""What happened in numbers, under the names of vocab.metrics.engine."""

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from prometheus_client import Counter, Gauge, Histogram

from engine.config import EngineConfig
from engine.core.scheduler import Scheduler
from engine.core.sequence import Finish, Output, Sequence, Step
from engine.health.outcome import Outcome, Run
from engine.request_log import StepLines, request_line
from engine.roofline_metrics import RooflineMetrics
from vocab.metrics import ENGINE, Kind
from wire.exposition import Exposition

if TYPE_CHECKING:
    from engine.room import CacheShape

STATES = ("ready", "loading", "fenced", "draining", "failed", "corrupt")


class EngineMetrics(Exposition):
    """The collectors of one engine. Safe to use from the HTTP loop and from the step loop."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(ENGINE)
        self.refresh: Callable[[], None] = lambda: None
        """Called before a scrape is answered, to set what is only true at that moment (see ``stands``)."""
        self._model = config.served_name
        self._labels = {"model_name": config.served_name, "engine": "0"}
        self._booked: dict[tuple[str, ...], int] = {}
        self._first_token = self._histogram("time_to_first_token_seconds")
        self._between_tokens = self._histogram("inter_token_latency_seconds")
        self._iteration = self._histogram("iteration_tokens_total")
        self._prompt = self._counter("prompt_tokens_total")
        self._generation = self._counter("generation_tokens_total")
        self._steps = self.counter("corral_engine_steps_total")
        self._step_seconds = self.histogram("corral_engine_step_seconds")
        self.roofline = RooflineMetrics(self, self._labels)
        self._lines = StepLines() if config.log_steps else None
        self._log_requests = config.log_requests
        self._describe(config)

    def _gauge(self, name: str, **more: str) -> Gauge:
        return self.gauge(f"vllm:{name}").labels(**self._labels, **more)

    def _counter(self, name: str, **more: str) -> Counter:
        return self.counter(f"vllm:{name}").labels(**self._labels, **more)

    def _histogram(self, name: str) -> Histogram:
        return self.histogram(f"vllm:{name}").labels(**self._labels)

    def _describe(self, config: EngineConfig) -> None:
        """Series that are there from the start: a counter that appears with its first event hides that event."""
        gauge = self.gauge
        gauge("corral_engine_build_info").labels(importlib.metadata.version("corral")).set(1)
        gauge("corral_engine_replica_info").labels(config.replica, config.served_name, config.device).set(1)
        for uuid in config.gpus:
            gauge("corral_engine_gpu_info").labels(config.replica, uuid).set(1)
        for finish in Finish:
            self._counter("request_success_total", finished_reason=finish.value)
        self._gauge("engine_sleep_state", sleep_state="awake").set(1)
        for state in ("weights_offloaded", "discard_all"):
            self._gauge("engine_sleep_state", sleep_state=state)
        for reason in ("capacity", "deferred"):
            self._gauge("num_requests_waiting_by_reason", reason=reason)
        for source in ("local_compute", "local_cache_hit", "external_kv_transfer"):
            self._counter("prompt_tokens_by_source_total", source=source)
        self._counter("prompt_tokens_cached_by_source_total", source="device")
        for place in range(config.speculative_tokens):
            self._counter("spec_decode_num_accepted_tokens_per_pos_total", position=str(place))
        for outcome in Outcome:
            self.counter("corral_engine_canary_runs_total").labels(outcome.value)
        for code in (*STATES[1:], "queue_full"):
            self.counter("corral_engine_refused_requests_total").labels(code)
        self.counter("vllm:admission_rejections_total").labels(self._model, "max_num_queued_reqs")
        make: dict[Kind, Callable[[str], object]] = {
            Kind.GAUGE: self._gauge,
            Kind.COUNTER: self._counter,
            Kind.HISTOGRAM: self._histogram,
        }
        for row in ENGINE:
            if row.labels == tuple(self._labels):
                make[row.kind](row.name.removeprefix("vllm:"))

    def render(self) -> tuple[bytes, str]:
        """See Exposition; the gauges say what is true now."""
        self.refresh()
        self.roofline.refresh()
        return super().render()

    def refused(self, code: str) -> None:
        """A request was not admitted."""
        self.counter("corral_engine_refused_requests_total").labels(code).inc()
        if code == "queue_full":
            self.counter("vllm:admission_rejections_total").labels(self._model, "max_num_queued_reqs").inc()

    def canary_ran(self, run: Run) -> None:
        """A canary has made a whole run."""
        self.counter("corral_engine_canary_runs_total").labels(run.outcome.value).inc()
        self.gauge("corral_engine_canary_seconds").set(run.seconds)

    def ran_short(self) -> None:
        """A step found no memory and was cut into smaller ones."""
        self.counter("corral_engine_out_of_memory_total").inc()

    def loaded(self, seconds: float, phases: Mapping[str, float], cache: "CacheShape") -> None:
        """The model is there."""
        told = {name: str(value) for name, value in msgspec.structs.asdict(cache).items()}
        self.gauge("vllm:cache_config_info").labels(engine="0", **told).set(1)
        for phase, took in phases.items():
            self.gauge("corral_engine_load_phase_seconds").labels(phase).set(took)
        self.gauge("corral_engine_load_seconds").set(seconds)

    def stands(
        self, state: str, open_requests: int, running: int, waiting: int, kv_ratio: float, p999_s: float
    ) -> None:
        """The state of this moment, set when someone asks for it."""
        gauge = self.gauge
        for name in STATES:
            gauge("corral_engine_state").labels(name).set(name == state)
        gauge("corral_engine_ready").set(state == "ready")
        gauge("corral_engine_open_requests").set(open_requests)
        gauge("corral_engine_step_p999_seconds").set(p999_s)
        self._gauge("num_requests_running").set(running)
        self._gauge("num_requests_waiting").set(waiting)
        self._gauge("num_requests_waiting_by_reason", reason="capacity").set(waiting)
        self._gauge("kv_cache_usage_perc").set(kv_ratio)

    def stepped(self, step: Step, outputs: list[Output], scheduler: Scheduler, began: float, ended: float) -> None:
        """A step ran from ``began`` to ``ended`` (monotonic seconds); stamps the sequences that it moved."""
        self._steps.inc()
        self._step_seconds.observe(ended - began)
        self._iteration.observe(step.tokens)
        self._generation.inc(len(outputs))
        self._book("num_preemptions_total", scheduler.preemptions)
        self._book("prefix_cache_queries_total", scheduler.prefix_queries)
        self._book("prefix_cache_hits_total", scheduler.prefix_hits)
        self._book("spec_decode_num_drafts_total", scheduler.speculation.drafts)
        self._book("spec_decode_num_draft_tokens_total", scheduler.speculation.drafted)
        self._book("spec_decode_num_accepted_tokens_total", scheduler.speculation.accepted)
        for place, accepted in enumerate(scheduler.speculation.accepted_at):
            self._book("spec_decode_num_accepted_tokens_per_pos_total", accepted, position=str(place))
        if self._lines is not None:
            self._lines.stepped(step, len(scheduler.running), len(scheduler.waiting), ended, ended - began)
        if self.roofline.watch is not None:
            self.roofline.watch.took(step, ended - began)
        moved = {span.sequence.id: span.sequence for span in step.spans}
        for sequence in moved.values():
            sequence.timing.started = sequence.timing.started or began
        for output in outputs:
            self._token(moved[output.id], ended)
            if output.finish is not None:
                self.finished(moved[output.id], output.finish)

    def _book(self, name: str, total: int, **more: str) -> None:
        key = (name, *more.values())
        self._counter(name, **more).inc(total - self._booked.get(key, 0))
        self._booked[key] = total

    def _token(self, sequence: Sequence, now: float) -> None:
        timing = sequence.timing
        if timing.first_token:
            self._between_tokens.observe(now - timing.last_token)
        else:
            timing.first_token = now
            self._first_token.observe(now - timing.arrived)
            found = sequence.cached
            self._prompt.inc(sequence.prompt_len)
            self._counter("prompt_tokens_by_source_total", source="local_compute").inc(sequence.prompt_len - found)
            self._counter("prompt_tokens_by_source_total", source="local_cache_hit").inc(found)
            self._counter("prompt_tokens_cached_total").inc(found)
            self._counter("prompt_tokens_cached_by_source_total", source="device").inc(found)
        timing.last_token = now

    def finished(self, sequence: Sequence, finish: Finish) -> None:
        """A request has ended; only one that gave a token tells anything of times."""
        if self._log_requests:
            request_line(sequence, finish)
        self._counter("request_success_total", finished_reason=finish.value).inc()
        self._counter("corrupted_requests_total").inc(sequence.corrupt)
        self._histogram("request_prompt_tokens").observe(sequence.prompt_len)
        self._histogram("request_generation_tokens").observe(sequence.generated)
        self._histogram("request_params_max_tokens").observe(sequence.sampling.max_tokens)
        self._histogram("request_max_num_generation_tokens").observe(sequence.generated)
        self._histogram("request_params_n").observe(1)
        self._histogram("request_prefill_kv_computed_tokens").observe(sequence.prompt_len - sequence.cached)
        self._histogram("request_num_preemptions").observe(sequence.preemptions)
        timing = sequence.timing
        if not timing.first_token:
            return
        decode_s = timing.last_token - timing.first_token
        self._histogram("e2e_request_latency_seconds").observe(timing.last_token - timing.arrived)
        self._histogram("request_queue_time_seconds").observe(timing.started - timing.arrived)
        self._histogram("request_inference_time_seconds").observe(timing.last_token - timing.started)
        self._histogram("request_prefill_time_seconds").observe(timing.first_token - timing.started)
        self._histogram("request_decode_time_seconds").observe(decode_s)
        if sequence.generated > 1:
            self._histogram("request_time_per_output_token_seconds").observe(decode_s / (sequence.generated - 1))
