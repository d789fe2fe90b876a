"""/metrics with the names, types, labels and buckets of a running vLLM 0.32 (tests/data/vllm_metrics.json)."""

import json
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

GOLDEN = Path(__file__).parents[2] / "data" / "vllm_metrics.json"
REASONS = {
    "finished_reason": ("stop", "length", "abort", "error", "repetition"),
    "reason": ("capacity", "deferred"),
    "sleep_state": ("awake", "weights_offloaded", "discard_all"),
    "source": ("local_compute", "local_cache_hit", "external_kv_transfer"),
}


class Meters:
    """The registry of one server; ``add``, ``set`` and ``observe`` by full name."""

    def __init__(self, model: str) -> None:
        self._always = {"model_name": model, "engine": "0"}
        self.registry = CollectorRegistry()
        self._made = {name: self._make(name, row) for name, row in json.loads(GOLDEN.read_text())["metrics"].items()}

    def _make(self, name: str, row: dict[str, Any]) -> tuple[Any, list[str]]:
        labels, more = row["labels"], {}
        if row["type"] == "histogram":
            more = {"buckets": row["buckets"]}
        kind = {"histogram": Histogram, "counter": Counter}.get(row["type"], Gauge)
        made = kind(name, name, labels, registry=self.registry, **more)
        own = [label for label in labels if label not in self._always]
        if len(own) == 1 and own[0] in REASONS:
            for value in REASONS[own[0]]:
                made.labels(**self._given(labels), **{own[0]: value})
        elif not own:
            made.labels(**self._given(labels))
        return made, labels

    def _given(self, labels: list[str]) -> dict[str, str]:
        return {name: value for name, value in self._always.items() if name in labels}

    def _of(self, name: str, more: dict[str, str]) -> Any:
        made, labels = self._made[f"vllm:{name}"]
        return made.labels(**self._given(labels), **more)

    def add(self, name: str, by: float = 1.0, **more: str) -> None:
        self._of(name, more).inc(by)

    def set(self, name: str, value: float) -> None:
        self._of(name, {}).set(value)

    def observe(self, name: str, value: float) -> None:
        self._of(name, {}).observe(value)

    def render(self) -> bytes:
        return generate_latest(self.registry)
