"""How large the cache of keys and values is: what is asked for, or a share of the memory that is free."""

from pathlib import Path

import msgspec
import torch

from engine.config import EngineConfig
from engine.core.architecture import Architecture
from engine.core.attention import cache_block_bytes
from engine.core.attention_gather import BLOCK
from vocab.errors import ModelError

SHARE = {"cuda": 0.9, "cpu": 0.5}  # CUDA: activations and graphs take the rest; a CPU's memory is everybody's
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


class CacheShape(msgspec.Struct, frozen=True):
    """What a cache is, in the words of vLLM's ``cache_config_info``."""

    block_size: int = BLOCK
    num_gpu_blocks: int = 0
    cache_dtype: str = ""
    enable_prefix_caching: bool = True
    kv_cache_size_tokens: int = 0
    kv_cache_memory_bytes: int = 0
    kv_cache_max_concurrency: float = 0.0  # requests of the longest kind that it holds


def shape_of(arch: Architecture, dtype: torch.dtype, blocks: int, max_len: int) -> CacheShape:
    """The shape of a cache of so many blocks."""
    size = blocks * cache_block_bytes(BLOCK, arch.layers, arch.kv_heads, arch.head_dim, dtype.itemsize)
    return CacheShape(
        num_gpu_blocks=blocks,
        cache_dtype=str(dtype).removeprefix("torch."),
        kv_cache_size_tokens=blocks * BLOCK,
        kv_cache_memory_bytes=size,
        kv_cache_max_concurrency=round(blocks * BLOCK / max_len, 2),
    )


def free_bytes(device: torch.device, proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that this process could still take: of the GPU, or of the machine within its control group's limit."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    lines = (proc / "meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    for limit, used in _LIMITS:
        try:
            free = min(free, int((cgroup / limit).read_text()) - int((cgroup / used).read_text()))
        except (OSError, ValueError):  # another version of control groups, or the word *max*
            continue
    return max(0, free)


def cache_size(config: EngineConfig, arch: Architecture, element_bytes: int, free: int) -> tuple[int, int]:
    """Blocks of the cache and the longest sequence: one of full length always fits when it is alone.

    ``free``: bytes, looked at only without --kv-mib. Raises ModelError if the longest sequence does not fit.
    """
    per_block = cache_block_bytes(BLOCK, arch.layers, arch.kv_heads, arch.head_dim, element_bytes)
    mib = int(free * SHARE[config.device] / 2**20) if config.kv_mib is None else config.kv_mib
    blocks = mib * 2**20 // per_block
    wanted = config.max_model_len or min(arch.max_positions, blocks * BLOCK)
    if wanted > arch.max_positions:
        raise ModelError(f"--max-model-len {wanted}: the model reaches {arch.max_positions} tokens")
    if blocks < 1 or wanted > blocks * BLOCK:
        least = -(-max(wanted, BLOCK) // BLOCK) * per_block / 2**20
        raise ModelError(f"--kv-mib {mib}: too small for --max-model-len {wanted}; {least:.0f} would do")
    return min(blocks, config.max_running * -(-wanted // BLOCK)), wanted
