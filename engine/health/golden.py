"""Known answers of one model on one kind of device: what its prompts gave, and the sum of its weights' bits.

They are learned once for each (model files, type of numbers, device, PyTorch, Corral) and kept beside the converted
weights. Whoever looks sees a whole file or none. A first run has nothing to compare with, unless the values are
shipped (engine.health.shipped).
"""

import importlib.metadata
import logging
import platform
from collections.abc import Sequence as Row
from hashlib import blake2b
from pathlib import Path

import msgspec
import torch

from engine.files.model_files import mark
from engine.health.shipped import SMOLLM2_FILE, SMOLLM2_GOLDEN
from wire.disk import write_durably

log = logging.getLogger(__name__)

TOLERANCE = {torch.float32: 2e-3, torch.float16: 0.05, torch.bfloat16: 0.15}  # of a log probability
_FORM = 2


class Answer(msgspec.Struct, frozen=True):
    """What one prompt gave, greedily: tokens, and the log probability of each."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]


class Golden(msgspec.Struct, frozen=True):
    """All that a later run is compared with; ``weights`` is the sum of their bits (see engine.health.weights)."""

    weights: int | None = None
    answers: tuple[Answer, ...] = ()


def prompts(vocab: int, max_len: int, answer: int) -> tuple[tuple[int, ...], ...]:
    """Prompts of any model: within one block of the cache, and over several."""
    lengths = {min(length, max_len - answer) for length in (12, 40)}
    return tuple(tuple((7919 * place + 13) % vocab for place in range(n)) for n in sorted(lengths) if n > 0)


class GoldenFile:
    """Where the known answers of one model on this kind of device are kept; without a folder nowhere."""

    def __init__(self, folder: Path | None, sources: Row[Path], dtype: torch.dtype, device: torch.device,
                 more: str = "") -> None:  # fmt: skip
        self._shipped = dtype == torch.float32 and not more and _is_shipped(sources)
        parts = [_FORM, [mark(path) for path in sources], str(dtype), device_name(device), str(torch.__version__),
                 importlib.metadata.version("corral"), more]  # fmt: skip
        name = f"{sources[0].stem}-{blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()}.golden.json"
        self._path = None if folder is None else folder / name

    def read(self) -> Golden:
        """What is known; empty if nothing is."""
        if self._path is not None:
            try:
                return msgspec.json.decode(self._path.read_bytes(), type=Golden)
            except FileNotFoundError:
                pass
            except (OSError, msgspec.DecodeError) as error:
                log.warning("known answers cannot be read and are learned anew",
                            extra={"file": str(self._path), "why": str(error)})  # fmt: skip
        return msgspec.convert(SMOLLM2_GOLDEN, Golden) if self._shipped else Golden()

    def write(self, golden: Golden) -> None:
        """Keep them, whole or not at all; a disk that cannot costs the comparison of the next start."""
        if self._path is None:
            return
        try:
            write_durably(self._path, msgspec.json.encode(golden))
        except OSError as error:
            log.warning("known answers cannot be kept", extra={"file": str(self._path), "why": str(error)})


def device_name(device: torch.device) -> str:
    """The board, or the processor: answers of another kind are not compared."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.machine()


def _is_shipped(sources: Row[Path]) -> bool:
    if len(sources) != 1 or sources[0].name != SMOLLM2_FILE[0]:
        return False
    found = mark(sources[0])
    return (found.name, found.size, found.ends) == SMOLLM2_FILE
