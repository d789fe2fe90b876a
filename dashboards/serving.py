"""The serving board: what users feel, why, and which replica stands apart from its peers."""

from dashboards import replicas
from dashboards.board import INCIDENT, Panels, assemble, label_variable, new_board
from dashboards.panels import GREEN, HALF, NONE, RED, THIRD, YELLOW, Query, lines, number

UID = "corral-serving"
ASKED = '{deployment="$deployment"}'
ENGINE = '{deployment="$deployment"}'


def board() -> bytes:
    """The board's JSON."""
    made = new_board(UID, "Corral / Serving", "One deployment: what its users feel, and which replica is to blame.")
    asked = "label_values(corral_replicas_wanted, deployment)"
    made = made.with_variable(label_variable("deployment", "Deployment", asked))
    return assemble(
        made,
        (
            ("What users feel, as the gateway saw it", _users()),
            ("What engines do with it", _engines()),
            ("Which replica stands apart", replicas.outliers()),
            ("How far from what the hardware can do", replicas.roofs()),
        ),
        (INCIDENT,),
    )


def _quantile(share: float, name: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({name}_bucket{ASKED}[$__rate_interval])))"


def _quantiles(name: str) -> tuple[Query, ...]:
    return tuple(Query(_quantile(share, name), f"{share:.0%}") for share in (0.5, 0.95, 0.99))


def _users() -> Panels:
    answered = f"sum(rate(corral_gateway_requests_total{ASKED}[$__rate_interval]))"
    broken = 'sum(rate(corral_gateway_requests_total{deployment="$deployment",code=~"5.."}[$__rate_interval]))'
    return (
        number(
            "Ready of wanted",
            "Ready replicas against those that are asked for. Good: 100 %.",
            Query(f"sum(corral_replicas_ready{ASKED}) / sum(corral_replicas_wanted{ASKED})", "ready"),
            "percentunit",
            steps=((None, RED), (0.5, YELLOW), (1, GREEN)),
        ),
        number(
            "Failed, 5 min",
            "Share of requests that ended in a server's error. Good: under 0.1 %.",
            Query(
                '(sum(increase(corral_gateway_requests_total{deployment="$deployment",code=~"5.."}[5m]))'
                f" or 0 * max(corral_gateway_counted_replicas{ASKED}))"
                f" / sum(increase(corral_gateway_requests_total{ASKED}[5m]))",
                "failed",
            ),
            "percentunit",
            steps=((None, GREEN), (0.001, YELLOW), (0.01, RED)),
        ),
        number(
            "Streams broken, 1 h",
            "Answers whose replica was lost midway. Good: 0; the gateway goes on with them elsewhere where it can.",
            Query(f"sum(increase(corral_gateway_streams_broken_total{ASKED}[1h])) {NONE}", "streams"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Panic",
            "Good: no. Yes: fewer than half of the replicas can be routed to, so the gateway tries the rest too.",
            Query(f"max(corral_gateway_panic{ASKED})", "panic"),
            "none",
            steps=((None, GREEN), (1, RED)),
            words={"0": ("no", GREEN), "1": ("yes", RED)},
        ),
        lines(
            "Requests a second",
            "By HTTP status as clients saw it. Good: 200s alone; 499 is a client that left first, 503 a full house.",
            (Query(f"sum by (code) (rate(corral_gateway_requests_total{ASKED}[$__rate_interval]))", "{{code}}"),),
            "none",
            stacked=True,
        ),
        lines(
            "Time to first byte",
            "From a request to its first byte, whichever replica answered. Good: flat. Compare the median with 99 %: if"
            " only the last rises, one replica is slow.",
            _quantiles("corral_gateway_ttft_seconds"),
            "s",
        ),
        lines(
            "Whole answer",
            "From a request to its end. Good: it follows the length of the answers.",
            _quantiles("corral_gateway_request_duration_seconds"),
            "s",
        ),
        lines(
            "Good share of requests",
            "Answered without a server's error. Good: over 99.9 %; what is lost below is the budget of the objective.",
            (Query(f"1 - ({broken} or 0 * {answered}) / {answered}", "good"),),
            "percentunit",
            most=1,
        ),
        lines(
            "Goodput",
            "Requests a second that were answered at all, and those whose first byte came in time. Good: the lines lie"
            " on each other; what lies between them was served too late to be of use.",
            (
                Query(f"sum(rate(corral_gateway_ttft_seconds_count{ASKED}[$__rate_interval]))", "answered"),
                *(
                    Query(
                        f'sum(rate(corral_gateway_ttft_seconds_bucket{{deployment="$deployment",le="{limit}"}}'
                        "[$__rate_interval]))",
                        f"first byte within {limit} s",
                    )
                    for limit in ("2.5", "0.5")
                ),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "Tried elsewhere",
            "Tries that went to another replica before the first byte, by why. Good: none; each is a request that"
            " a user"
            " did not lose.",
            (Query(f"sum by (reason) (rate(corral_gateway_retries_total{ASKED}[$__rate_interval]))", "{{reason}}"),),
            "none",
            width=THIRD,
        ),
        lines(
            "Replicas",
            "Good: routable on counted, ready on wanted. At the floor (dashed) repairs wait.",
            (
                Query(f"corral_replicas_wanted{ASKED}", "wanted"),
                Query(f"corral_replicas_ready{ASKED}", "ready"),
                Query(f"sum(corral_gateway_routable_replicas{ASKED})", "routable"),
                Query(f"corral_replicas_floor{ASKED}", "floor", dashed=True),
            ),
            "none",
            width=THIRD,
        ),
    )


def _engines() -> Panels:
    def rate(name: str) -> str:
        return f"sum(rate({name}{ENGINE}[$__rate_interval]))"

    return (
        lines(
            "Batch and queue",
            "Requests that run and that wait, of all replicas. Good: a queue that comes and goes. A queue that"
            " stands is a"
            " replica too few, or an engine that is stuck: compare below.",
            (
                Query(f"sum(vllm:num_requests_running{ENGINE})", "run"),
                Query(f"sum(vllm:num_requests_waiting{ENGINE})", "wait"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "KV cache in use",
            "Mean and fullest replica. Good: under 90 %. At 100 % requests give their cache back and begin anew.",
            (
                Query(f"avg(vllm:kv_cache_usage_perc{ENGINE})", "mean"),
                Query(f"max(vllm:kv_cache_usage_perc{ENGINE})", "fullest"),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Found in the prefix cache",
            "Share of prompt tokens that needed no computing. Good: high where prompts share a beginning; a fall"
            " after a"
            " change of the gateway means that it no longer sends like to like.",
            (
                Query(
                    f"{rate('vllm:prefix_cache_hits_total')} / ({rate('vllm:prefix_cache_queries_total')} > 0)", "found"
                ),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Drafts that were right",
            "Speculative decoding: share of the drafted tokens that the model itself would have written. Good: over"
            " 60 %; under 30 % drafting costs more than it gives. Nothing: no replica drafts.",
            (
                Query(
                    f"{rate('vllm:spec_decode_num_accepted_tokens_total')}"
                    f" / ({rate('vllm:spec_decode_num_draft_tokens_total')} > 0)",
                    "accepted",
                ),
            ),
            "percentunit",
            most=1,
            width=THIRD,
        ),
        lines(
            "Began anew",
            "Requests that gave their KV cache back and were computed again. Good: none; each is work done twice, and"
            " the cache is too small for the batch.",
            (Query(rate("vllm:num_preemptions_total"), "a second"),),
            "none",
            width=THIRD,
        ),
        lines(
            "Tokens a second",
            "Read in prompts and made in answers. Good: it follows the requests.",
            (
                Query(rate("vllm:prompt_tokens_total"), "prompts"),
                Query(rate("vllm:generation_tokens_total"), "answers"),
            ),
            "none",
            width=THIRD,
        ),
        lines(
            "From token to token",
            "What a reader waits between two tokens. Good: flat. It rises with the batch, and jumps where a long prompt"
            " was computed between.",
            _quantiles("vllm:inter_token_latency_seconds"),
            "s",
            width=HALF,
        ),
        lines(
            "Where a request's time goes",
            "Mean seconds in the queue, in the prompt, in the answer. Good: hardly any in the queue.",
            tuple(
                Query(f"{rate(f'{name}_sum')} / ({rate(f'{name}_count')} > 0)", what)
                for name, what in (
                    ("vllm:request_queue_time_seconds", "queue"),
                    ("vllm:request_prefill_time_seconds", "prompt"),
                    ("vllm:request_decode_time_seconds", "answer"),
                )
            ),
            "s",
            width=HALF,
            stacked=True,
        ),
    )
