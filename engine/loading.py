"""From a model's files to something that can step: reads them, sizes the cache, warms up."""

import ctypes
from pathlib import Path
from typing import Any

import msgspec
import torch

from engine.capacity import parameters
from engine.config import EngineConfig
from engine.core import architecture
from engine.core.architecture import Architecture
from engine.core.attention import Backend
from engine.core.attention_gather import BLOCK, GatherBackend
from engine.core.blocks import BlockPool
from engine.core.flight import Flights
from engine.core.model import Forward, Model
from engine.core.packed import PackedModel
from engine.core.runner import Runner
from engine.core.scheduler import Scheduler
from engine.core.sequence import Sampling, Sequence
from engine.core.speculation import DRAFT_ROWS, Speculation
from engine.core.threads import Threads
from engine.files.checkpoint import Checkpoint, FolderCheckpoint, GgufCheckpoint, safetensors_files
from engine.files.gguf_file import GgufFile
from engine.files.location import locate
from engine.files.model_files import fingerprint
from engine.files.phases import Phases, TimedCheckpoint
from engine.files.weights import WeightCache, load
from engine.health.canary import Canary
from engine.health.first_run import first_run
from engine.health.rates import watch_of
from engine.health.step_watch import StepWatch
from engine.room import CacheShape, cache_size, free_bytes, shape_of
from engine.text import chat, tokenizer
from engine.text.chat import ChatTemplate
from engine.text.tokenizer import Tokenizer
from vocab.errors import ConfigError, ModelError


class Loaded:
    """A model that is ready to step, and what the API must know of it."""

    def __init__(self, scheduler: Scheduler, runner: Runner, tokens: Tokenizer, template: ChatTemplate | None,
                 max_len: int, arch: Architecture) -> None:  # fmt: skip
        self.scheduler = scheduler
        self.runner = runner
        self.tokenizer = tokens
        self.template = template
        self.max_len = max_len
        self.vocab = arch.vocab
        self.eos_ids = frozenset(arch.eos_ids)
        self.canary: Canary | None = None
        self.watch: StepWatch | None = None
        self.phases: dict[str, float] = {}  # seconds of loading, by phase
        self.ahead = False  # whether a step is scheduled while the one before is computed
        self.device = torch.device("cpu")
        self.cache = CacheShape()
        self.fingerprint = ""  # of the model's files: replicas of one can go on with each other's answers

    def flights(self) -> Flights:
        """What carries the steps of the loop that calls this."""
        return Flights(self.runner, ahead=self.ahead, on_cuda=self.device.type == "cuda")


class _Parts(msgspec.Struct, frozen=True):
    arch: Architecture
    checkpoint: Checkpoint
    files: list[Path]
    tokenizer: Tokenizer
    template: ChatTemplate | None


def load_model(config: EngineConfig) -> Loaded:
    """Everything of ``config.model``, warm. Raises ModelError."""
    torch.set_num_threads(config.threads)
    device = _device(config.device)
    path = locate(config.model)
    phases = Phases()
    with phases.of("open"):
        parts = _from_folder(path) if path.is_dir() else _from_gguf(path)
    arch = parts.arch
    if parts.tokenizer.vocab > arch.vocab:
        raise ModelError(f"{path}: its tokenizer knows {parts.tokenizer.vocab} tokens, its weights only {arch.vocab}")
    dtype = _dtype(config)
    kept = config.cache_dir if device.type == "cpu" and dtype is torch.float32 else None
    cache = WeightCache(kept, parts.files, arch) if kept else None
    checkpoint = TimedCheckpoint(parts.checkpoint, phases, parameters(arch))
    with phases.of("place"):
        weights = load(checkpoint, arch, cache, dtype, device)
    blocks, max_len = cache_size(config, arch, dtype.itemsize, free_bytes(device))
    with phases.of("place"):
        model, backend = _assemble(config, arch, weights, blocks, max_len, phases)
    pool = BlockPool(blocks, backend.block, backend.wipe)
    scheduler = Scheduler(pool, max_running=config.max_running, step_tokens=config.step_tokens,
                          speculation=Speculation(config.speculative_tokens, DRAFT_ROWS[device.type]))  # fmt: skip
    threads = Threads(config.threads) if device.type == "cpu" and config.threads > 1 else None
    runner = Runner(model, backend, device, threads)
    with phases.of("warm_up"):
        _warm_up(runner, arch, max_len)
        _give_back_memory()
    loaded = Loaded(scheduler, runner, parts.tokenizer, parts.template, max_len, arch)
    loaded.device = device
    loaded.fingerprint = fingerprint(parts.files)
    loaded.cache = shape_of(arch, dtype, blocks, max_len)
    loaded.ahead = device.type == "cuda" if config.async_scheduling is None else config.async_scheduling
    with phases.of("measure"):
        torch.set_num_threads(config.threads)  # the steps so far may have tried fewer
        loaded.watch = watch_of(arch, weights["embed"])
    with phases.of("canary"):
        watched = runner
        if isinstance(model, PackedModel) and config.quantization:  # that int8 is not exact is no fault of the device
            watched = Runner(model.exact(), backend, device)
        loaded.canary = first_run(config, watched, pool, weights, parts.files, max_len)
    loaded.phases = phases.seconds
    return loaded


def _device(name: str) -> torch.device:
    """Where to compute. Raises ConfigError if this process sees no such device."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda: PyTorch sees no CUDA device; is the driver loaded, does CUDA_VISIBLE_DEVICES name"
            f" a GPU of this node, is this PyTorch ({torch.__version__}) a build with CUDA?"
        )
    return torch.device(name)


def _dtype(config: EngineConfig) -> torch.dtype:
    name = {"cpu": "float32", "cuda": "bfloat16"}[config.device] if config.dtype == "auto" else config.dtype
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype), "the flag has no other choices"
    return found


def _assemble(
    config: EngineConfig,
    arch: Architecture,
    weights: dict[str, torch.Tensor],
    blocks: int,
    max_len: int,
    phases: Phases,
) -> tuple[Forward, Backend]:
    """The model and its cache: on CUDA with our kernels where they fit its heads, else of plain PyTorch."""
    like = weights["embed"]
    if like.is_cuda:
        from engine.cuda.assembly import assemble, fits

        if fits(arch):
            return assemble(config, arch, weights, blocks, max_len, phases)
    backend = GatherBackend(
        layers=arch.layers,
        blocks=blocks,
        heads=arch.heads,
        kv_heads=arch.kv_heads,
        head_dim=arch.head_dim,
        device=like.device,
        dtype=like.dtype,
    )
    if packs(config, like):
        return PackedModel(arch, weights, max_len, int8=config.quantization == "int8"), backend
    return Model(arch, weights, max_len), backend


def packs(config: EngineConfig, like: torch.Tensor) -> bool:
    """Whether to pack: what replicas map together, to share its memory, is left as it is unless int8 is asked for."""
    can = like.device.type == "cpu" and like.dtype is torch.float32
    return can and (config.quantization is not None or config.cache_dir is None)


def _from_gguf(path: Path) -> _Parts:
    file = GgufFile(path)
    arch = architecture.from_gguf(file.meta, file.names, str(path))
    tokens = tokenizer.from_gguf(file.meta, str(path))
    return _Parts(arch, GgufCheckpoint(file, arch, path), [path], tokens, chat.from_gguf(file.meta, str(path)))


def _from_folder(folder: Path) -> _Parts:
    arch = architecture.from_config_json(_json(folder / "config.json"), str(folder / "config.json"))
    generation = folder / "generation_config.json"
    if generation.is_file():  # its list of end tokens is the fuller one
        eos = _json(generation).get("eos_token_id")
        ids = eos if isinstance(eos, list) else [] if eos is None else [eos]
        arch = msgspec.structs.replace(arch, eos_ids=tuple(sorted({*arch.eos_ids, *ids})))
    tokens = tokenizer.from_file(folder / "tokenizer.json")
    return _Parts(arch, FolderCheckpoint(folder), safetensors_files(folder), tokens, chat.from_folder(folder))


def _json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise ModelError(
            f"{path}: {error.strerror}; a model folder holds config.json, tokenizer.json and safetensors"
        ) from error
    except msgspec.DecodeError as error:
        raise ModelError(f"{path}: not JSON: {error}") from error


def _give_back_memory() -> None:
    """Return what converting has freed to the system (glibc keeps it: 600 MiB for SmolLM2)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _warm_up(runner: Runner, arch: Architecture, max_len: int) -> None:
    """One prompt and one token through a cache that nobody uses yet: the first request then finds all things made."""
    pool = BlockPool(1, BLOCK)
    scheduler = Scheduler(pool, max_running=1, step_tokens=BLOCK)
    length = min(BLOCK, max_len) - 1
    scheduler.add(Sequence("warm-up", [token % arch.vocab for token in range(length)], Sampling(max_tokens=1), 0.0))
    while (step := scheduler.schedule()) is not None:
        scheduler.settle(step, runner.run(step))
