"""SGLang. Facts of 0.5: its metrics stand only with ``--enable-metrics``; it drains on SIGTERM without a deadline.

Its gauges and its live token counter move once a log interval (40 decode steps), its latencies with each token that
a client is streamed.
"""

from agent.adapters.adapter import Adapter, Meters, Start, flags


def argv(start: Start) -> tuple[str, ...]:
    """``python -m sglang.launch_server`` with its metrics on; over several nodes tensor parallel over all GPUs."""
    spec, group = start.spec, start.group
    gpus = group.gpus if group is not None else len(spec.members)
    pairs: list[tuple[str, object]] = [
        ("--model-path", spec.model),
        ("--served-model-name", spec.deployment),
        ("--host", "127.0.0.1"),
        ("--port", start.port),
        ("--tp-size", gpus if gpus > 1 else None),
        ("--enable-metrics", True),
    ]
    if group is not None:
        pairs += [
            ("--nnodes", group.nodes),
            ("--node-rank", group.rank),
            ("--dist-init-addr", f"{group.leader}:{group.port}"),
        ]
    return ("python3", "-m", "sglang.launch_server", *flags(pairs, spec.options))


SGLANG = Adapter(
    name="sglang",
    argv=argv,
    marks=("sglang:",),
    meters=Meters(  # python/sglang/srt/metrics/collector.py
        steps=("sglang:inter_token_latency_seconds_count", "sglang:time_to_first_token_seconds_count"),
        tokens=("sglang:realtime_tokens_total", "sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        kv_ratio=("sglang:token_usage",),
    ),
    named_by=("sglang", "sglang.launch_server"),
    model_flags=("--served-model-name", "--model-path", "--model"),
    default_port=30000,
    telling=(r"address already in use", r"Not enough memory", r"Scheduler hit an exception"),
)
