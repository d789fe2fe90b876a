"""Whether a neighbour slows down: the time of one output token, window by window, against that before the test.

One slow window is chance (a long prompt, a full batch); two in a row above 5 % end the test.
"""

from collections import defaultdict
from collections.abc import Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

RISE = 1.05
WINDOWS = 2
# Histograms of the time from one token to the next: our engine and vLLM (since 0.9 and before), SGLang.
NAMES = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "sglang:inter_token_latency_seconds")


class Tokens(msgspec.Struct, frozen=True):
    """What a histogram has counted: seconds between tokens, and tokens."""

    seconds: float
    count: float


def tokens_in(text: str) -> Tokens | None:
    """Of an engine's /metrics; None if it tells nothing."""
    wanted = {f"{name}_{part}" for name in NAMES for part in ("sum", "count")}
    lines = [line for line in text.splitlines() if line.partition("{")[0].split(" ")[0] in wanted]
    totals: dict[str, float] = defaultdict(float)
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                totals[sample.name] += sample.value
    except ValueError:
        return None
    name = next((name for name in NAMES if f"{name}_count" in totals and f"{name}_sum" in totals), None)
    return Tokens(totals[f"{name}_sum"], totals[f"{name}_count"]) if name else None


class Paces(msgspec.Struct):
    """The neighbours' paces; give it what each has counted once a window."""

    last: dict[str, Tokens] = {}
    usual: dict[str, float] = {}
    slow: dict[str, int] = {}

    def base(self, counted: Mapping[str, Tokens]) -> None:
        """Before the test: what one window is like."""
        self.usual |= self._windows(counted)

    def look(self, counted: Mapping[str, Tokens]) -> str | None:
        """During the test: which neighbour it slows down, or None."""
        for replica, pace in self._windows(counted).items():
            usual = self.usual.get(replica)
            if usual is None:
                self.usual[replica] = pace  # it began to serve meanwhile: the best there is to compare with
                continue
            self.slow[replica] = self.slow.get(replica, 0) + 1 if pace >= usual * RISE else 0
            if self.slow[replica] >= WINDOWS:
                return f"{replica} slowed down beside it: {pace * 1e3:.1f} ms a token after {usual * 1e3:.1f} ms"
        return None

    def _windows(self, counted: Mapping[str, Tokens]) -> dict[str, float]:
        """Seconds a token of those that gave tokens since the last look."""
        found = {}
        for replica, now in counted.items():
            before = self.last.get(replica)
            if before is not None and now.count > before.count:
                found[replica] = (now.seconds - before.seconds) / (now.count - before.count)
        self.last = dict(counted)
        return found
