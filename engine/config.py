"""The flags of one engine process, as one frozen struct."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from vocab.errors import ConfigError
from wire.config import is_loopback, split_address


class EngineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a replica is told when it starts."""

    replica: str
    model: str
    served_name: str
    listen: str
    beat: Path
    device: str = "cpu"
    dtype: str = "auto"
    enforce_eager: bool = False
    threads: int = 1
    gpus: tuple[str, ...] = ()
    max_running: int = 16
    max_waiting: int = 64
    max_model_len: int | None = None  # the model's own limit, or what the KV cache holds
    kv_mib: int | None = None  # a share of the memory that is free (engine/room.py)
    step_tokens: int = 256  # a step of 256 prompt tokens takes about a second of one core
    speculative_tokens: int = 0
    quantization: str | None = None
    async_scheduling: bool | None = None  # on CUDA only: a CPU has no host to spare
    cache_dir: Path | None = None
    token_file: Path | None = None
    drain_s: float = 120.0
    canary_s: float = 900.0
    log_json: bool = False
    log_requests: bool = False
    log_steps: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see: python -m engine --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m engine", description="Serve one model over an OpenAI-compatible API.")
    add = parser.add_argument
    add("--replica", required=True, help="name of this replica, as the agent calls it")
    add("--model", required=True, help="smollm2, a .gguf file, or a folder with config.json and safetensors")
    add("--served-name", help="the model name that clients send (default: --model)")
    add("--listen", required=True, help="host:port on loopback; port 0 takes a free one")
    add("--beat", required=True, type=Path, help="file that carries this replica's pulse")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs; cuda: on the first visible GPU")
    add("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"),
        help="of weights and cache; auto: float32 on the CPU, bfloat16 on CUDA")  # fmt: skip
    add("--enforce-eager", action="store_true", help="no CUDA graphs: slower, and an error shows where it comes from")
    add("--threads", type=int, default=1, help="threads of one operation")
    add("--gpus", default="", help="UUIDs of the GPUs that this replica stands for, separated by commas")
    add("--max-running", type=int, default=16, help="requests in one batch")
    add("--max-waiting", type=int, default=64, help="requests that may wait; more are refused with 503")
    add("--max-model-len", type=int, help="longest prompt and answer together, in tokens")
    add(
        "--kv-mib",
        type=int,
        help="size of the KV cache in MiB (default: of what is free, 90 %% on CUDA, half on a CPU)",
    )
    add("--step-tokens", type=int, default=256, help="tokens that one step computes at most")
    add("--speculative-tokens", type=int, default=0, help="tokens that are guessed by prompt lookup at most; 0: none")
    add("--quantization", choices=("int8",), help="int8: decodes in int8, on a CPU only")
    add("--async-scheduling", action=argparse.BooleanOptionalAction,
        help="schedule a step while the one before is computed (default: on CUDA)")  # fmt: skip
    add("--cache-dir", type=Path, help="keep the converted weights here; replicas then share their memory")
    add("--token-file", type=Path, help="ask clients for the token in this file")
    add("--drain-s", type=float, default=120.0, help="seconds that SIGTERM leaves to the requests under way")
    add("--canary-s", type=float, default=900.0, help="seconds between canaries while idle; 0: none but the first")
    add("--log-json", action="store_true", help="log JSON lines")
    add("--log-requests", action="store_true", help="one line for each request that has ended")
    add("--log-steps", action="store_true", help="one line for a step, once a second at most")
    return parser


def parse(arguments: Sequence[str]) -> EngineConfig:
    """The flags as a struct. Raises ConfigError naming the flag and the rule."""
    flags = vars(_parser().parse_args(arguments))
    flags["served_name"] = flags["served_name"] or flags["model"]
    flags["gpus"] = tuple(uuid for uuid in flags["gpus"].split(",") if uuid)
    config = EngineConfig(**flags)
    for name in ("threads", "max_running", "max_waiting", "kv_mib", "step_tokens"):
        if getattr(config, name) is not None and getattr(config, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')}: must be 1 or more, not {getattr(config, name)}")
    if config.max_model_len is not None and config.max_model_len < 2:
        raise ConfigError("--max-model-len: must be 2 or more, one token in and one out")
    if config.speculative_tokens < 0:
        raise ConfigError("--speculative-tokens: must not be negative")
    if config.quantization and (config.device != "cpu" or config.dtype not in {"auto", "float32"}):
        raise ConfigError("--quantization: only on a CPU in float32; leave --device and --dtype as they are")
    if config.drain_s < 0:
        raise ConfigError("--drain-s: must not be negative")
    if config.step_tokens < config.max_running:
        raise ConfigError("--step-tokens: must be at least --max-running, or a full batch does not fit into one step")
    host, _ = split_address(config.listen, "--listen")
    if not is_loopback(host):
        raise ConfigError(f"--listen: {host} can be reached from other machines; an engine listens on loopback only")
    return config
