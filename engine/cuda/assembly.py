"""A model on CUDA, put together: fused kernels, paged cache, and its decode steps captured."""

import logging

import torch

from engine.config import EngineConfig
from engine.core.architecture import Architecture
from engine.core.attention import Backend
from engine.core.model import Forward, Weights
from engine.cuda.attention import PagedBackend
from engine.cuda.graphs import Capture, GraphedModel
from engine.cuda.model import FusedModel
from engine.cuda.prompts import flash, tried
from engine.files.phases import Phases

log = logging.getLogger(__name__)


def fits(arch: Architecture) -> bool:
    """Whether the kernels can take its heads: their size is a power of two that a tensor core can multiply."""
    return arch.head_dim >= 16 and arch.head_dim.bit_count() == 1


def assemble(
    config: EngineConfig, arch: Architecture, weights: Weights, blocks: int, max_len: int, phases: Phases
) -> tuple[Forward, Backend]:
    """The model and its cache on the device of its weights; with graphs unless the configuration forbids them."""
    like = weights["embed"]
    prompts = tried(flash(), arch.heads, arch.kv_heads, arch.head_dim, like)
    backend = PagedBackend(
        layers=arch.layers,
        blocks=blocks,
        heads=arch.heads,
        kv_heads=arch.kv_heads,
        head_dim=arch.head_dim,
        most_tokens=config.step_tokens,
        most_rows=config.max_running,
        longest=max_len,
        device=like.device,
        dtype=like.dtype,
        prompts=prompts,
    )
    model = FusedModel(arch, weights, max_len)
    if config.enforce_eager:
        return model, backend
    with phases.of("graph"):
        graphed = GraphedModel(model, backend, config.max_running, torch.empty(0, arch.hidden).to(like), Capture())
        graphed.capture(lambda done, of: log.info("captured graphs", extra={"done": done, "of": of}))
    return graphed, backend
