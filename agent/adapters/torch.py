"""Corral's own engine: it has a door for fences and drains, and writes its beat to a file."""

from agent.adapters.adapter import Adapter, Farewell, Meters, Start, flags
from agent.adapters.group import refuse
from vocab.catalogue.exits import GPU_FAULT, OUT_OF_MEMORY, EngineExit


def argv(start: Start) -> tuple[str, ...]:
    """The command line. Raises ConfigError for a part of a group: its layers are not split over nodes."""
    refuse(start.group, "torch")
    spec = start.spec
    pairs: list[tuple[str, object]] = [
        ("--replica", spec.replica),
        ("--model", spec.model),
        ("--served-name", spec.deployment),
        ("--listen", f"127.0.0.1:{start.port}"),
        ("--beat", start.beat),
        ("--device", "cpu" if start.cpu else "cuda"),
        ("--gpus", ",".join(member.gpu for member in spec.members)),
        ("--drain-s", f"{spec.drain_s:g}"),
        ("--threads", "1" if start.cpu else None),
        ("--max-running", spec.options.get("max_running")),
    ]
    return (*start.program, *flags(pairs, {}))


TORCH = Adapter(
    name="torch",
    argv=argv,
    marks=("corral_engine_",),
    meters=Meters(  # vocab/metrics/engine.py
        steps=("corral_engine_steps_total",),
        tokens=("vllm:generation_tokens_total", "vllm:prompt_tokens_total"),
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_ratio=("vllm:kv_cache_usage_perc",),
        ended=("vllm:request_success_total",),
        ended_by="finished_reason",
        ok=frozenset({"stop", "length"}),
        failed=frozenset({"error"}),
    ),
    ready="/ready",
    farewell=Farewell.DOOR,
    has_beat=True,
    named_by=("engine",),  # python -m engine, started by hand or as corral-replica@NAME
    named_with=("--listen", "--beat"),
    model_flags=("--served-name", "--model"),
    exits={
        EngineExit.CUT_OFF: "cut off",
        EngineExit.GPU_FAULT: GPU_FAULT,
        EngineExit.OUT_OF_MEMORY: OUT_OF_MEMORY,
    },
)
