"""A tiny engine without a server, whose canary is run by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engine.config import EngineConfig
from engine.loading import Loaded, load_model
from tests.engine.replica import settings


def loaded(folder: Path, cache: Path | None = None, **changes: Any) -> Loaded:
    """The model in ``folder``, its canary run once."""
    return load_model(config(folder, cache, **changes))


def config(folder: Path, cache: Path | None = None, **changes: Any) -> EngineConfig:
    """Its flags; without a cache nothing is kept."""
    return settings(folder, cache_dir=cache, **changes)


def flip(tensor: torch.Tensor, place: int, bit: int) -> None:
    """Flip one bit of one float32 value, as a cosmic ray would."""
    tensor.view(-1).view(torch.int32)[place] ^= 1 << bit if bit < 31 else -(1 << 31)


def weights_of(engine: Loaded) -> Mapping[str, torch.Tensor]:
    """The weights in memory, by name."""
    runner: Any = engine.runner
    model: Any = getattr(runner, "_inner", runner)._model
    return model._weights
