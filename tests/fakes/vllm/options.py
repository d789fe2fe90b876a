"""The flags of the fake vLLM: vLLM's own that it needs, and those of the fake."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What it was started with."""

    model: str
    host: str
    port: int
    served_model_name: str
    tensor_parallel_size: int
    shutdown_timeout: float
    api_key: str | None
    clients: Path | None  # where its processes say which virtual GPUs they hold
    gpus: tuple[int, ...]
    load_s: float  # until its port opens, as weights are loaded first
    rate: float  # tokens a second of each stream


def parse(words: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="vllm")
    parser.add_argument("command", choices=("serve",))
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--shutdown-timeout", type=float, default=0.0)
    parser.add_argument("--api-key")
    parser.add_argument("--clients", type=Path)
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--load-s", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=200.0)
    given = vars(parser.parse_args(words))
    del given["command"]
    given["served_model_name"] = given["served_model_name"] or given["model"]
    given["gpus"] = tuple(int(gpu) for gpu in given["gpus"].split(","))
    return Options(**given)
