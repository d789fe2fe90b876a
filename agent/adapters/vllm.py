"""vLLM. Facts of 0.32, from a running one and its source; the names of V0 are gone.

Its /health answers 200 while it drains and while its engine core is wedged (it runs no token), and 503 once the core
is known dead; during a drain new requests get 500. So only its counters tell how it is. A request that is still open
when its time to drain is over keeps the process for ever, without a core and deaf to SIGTERM: only SIGKILL ends it.
"""

from agent.adapters.adapter import Adapter, Meters, Start, flags


def argv(start: Start) -> tuple[str, ...]:
    """``vllm serve``; with a time to drain, for without one SIGTERM cuts every stream at once.

    Over several nodes as its documentation advises: tensor parallel within a node, pipeline parallel between them, its
    own processes without Ray, and no server but on the leader. ``options`` may divide it in another way.
    """
    spec, group = start.spec, start.group
    pairs: list[tuple[str, object]] = [
        ("--served-model-name", spec.deployment),
        ("--host", "127.0.0.1"),
        ("--port", start.port),
        ("--tensor-parallel-size", len(spec.members) if len(spec.members) > 1 else None),
        ("--shutdown-timeout", max(1, round(spec.drain_s))),
    ]
    if group is not None:
        pairs += [
            ("--pipeline-parallel-size", group.nodes),
            ("--distributed-executor-backend", "mp"),
            ("--nnodes", group.nodes),
            ("--node-rank", group.rank),
            ("--master-addr", group.leader),
            ("--master-port", group.port),
            ("--headless", not group.leads),
        ]
    return ("vllm", "serve", spec.model, *flags(pairs, spec.options))


VLLM = Adapter(
    name="vllm",
    argv=argv,
    marks=("vllm:",),
    meters=Meters(  # /metrics of a running 0.32
        steps=("vllm:iteration_tokens_total_count",),  # a histogram over steps, despite its name
        # not request_generation_tokens_sum: it grows when a request ends, so a long answer would look like a standstill
        tokens=("vllm:generation_tokens_total", "vllm:prompt_tokens_total"),
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_ratio=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),  # the second until 0.10
        ended=("vllm:request_success_total",),
        ended_by="finished_reason",
        ok=frozenset({"stop", "length", "repetition"}),
        failed=frozenset({"error"}),
    ),
    named_by=("vllm", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main"),
    model_flags=("--served-model-name", "--model"),
    default_port=8000,
    telling=(
        r"No available memory for the cache blocks",
        r"ValueError: .*(max_model_len|KV cache)",
        r"address already in use",
        r"(?<!See )root cause",
        r"EngineDeadError|EngineCore encountered an issue",
    ),
)
