"""A model's weights in memory, joined as the model wants them, and a cache of them that replicas share.

The cache holds float32 safetensors that are mapped, not read: replicas of one model on one node then share the
pages. The first process converts under a file lock, the others wait for it and map what it wrote.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec
import torch

from engine.core.architecture import Architecture
from engine.core.model import weight_shapes
from engine.files.checkpoint import Checkpoint
from vocab.errors import ModelError
from wire.disk import sync_folder

log = logging.getLogger(__name__)

_FORM = 1  # of the cached file; another number never reads the old ones


def join(checkpoint: Checkpoint, arch: Architecture, dtype: torch.dtype = torch.float32,
         device: torch.device | None = None) -> dict[str, torch.Tensor]:  # fmt: skip
    """All weights of ``arch``, each converted while it is copied to its place on ``device``.

    So no more than one tensor is in memory twice. Raises ModelError naming one that is missing or has another shape.
    """
    weights = {}
    for name, shape in weight_shapes(arch).items():
        parts = [checkpoint.read(part) for part in checkpoint.parts(name)]
        if (sum(len(part) for part in parts), *parts[0].shape[1:]) != shape:
            found = ", ".join(f"{part} {tuple(tensor.shape)}" for part, tensor in
                              zip(checkpoint.parts(name), parts, strict=True))  # fmt: skip
            raise ModelError(f"the weights do not fit their configuration: {name} must be {shape}, but found {found}")
        whole = torch.empty(shape, dtype=dtype, device=device)
        for part, place in zip(parts, torch.split(whole, [len(part) for part in parts]), strict=True):
            place.copy_(part)
        weights[name] = whole
    return weights | checkpoint.extras()


class WeightCache:
    """Converted weights in a folder, one file a model; safe for processes that start at the same time."""

    def __init__(self, folder: Path, sources: list[Path], arch: Architecture) -> None:
        try:
            stats = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelError(f"--cache-dir {folder}: {error.strerror}") from error
        mark = blake2b(msgspec.json.encode([_FORM, stats, arch]), digest_size=8).hexdigest()
        self._path = folder / f"{sources[0].stem}-{mark}.safetensors"

    def load(self) -> dict[str, torch.Tensor] | None:
        """The cached weights, mapped; None if there are none or they are damaged."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(self._path)
        except FileNotFoundError:
            return None
        except (SafetensorError, OSError) as error:
            log.warning(
                "converted weights are damaged and will be made again", extra={"file": self._path, "why": error}
            )
            return None

    def store(self, weights: dict[str, torch.Tensor]) -> None:
        """Write the weights: whoever looks sees all of them or none. Raises OSError."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            save_file(weights, beside)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(self._path)
            sync_folder(self._path.parent)
        except SafetensorError as error:
            raise OSError(str(error)) from error
        finally:
            beside.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of this file; the kernel frees it if the holder dies."""
        with self._path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def load(checkpoint: Checkpoint, arch: Architecture, cache: WeightCache | None, dtype: torch.dtype = torch.float32,
         device: torch.device | None = None) -> dict[str, torch.Tensor]:  # fmt: skip
    """The weights, by way of the cache if there is one: that is for float32 on the CPU."""
    if cache is None:
        return join(checkpoint, arch, dtype, device)
    found = cache.load()
    if found is not None:
        return found
    with cache.alone():
        found = cache.load()
        if found is not None:
            return found
        joined = join(checkpoint, arch)
        try:
            cache.store(joined)
        except OSError as error:  # a full or read-only disk costs the sharing, not the service
            log.warning("converted weights cannot be kept", extra={"why": error})
            return joined
    return cache.load() or joined
