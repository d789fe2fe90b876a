"""Where a model's tensors come from: a safetensors folder or a GGUF file, under one set of names.

``Checkpoint.parts`` says which tensors of the file make one of ours, top to bottom: the joined query, key and
value matrix comes from three.
"""

from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch

from engine.core.architecture import Architecture
from engine.files.gguf_file import GgufFile
from vocab.errors import ModelError

_TOP = {  # ours: (config.json folder, GGUF)
    "embed": ("model.embed_tokens.weight", "token_embd.weight"),
    "norm": ("model.norm.weight", "output_norm.weight"),
    "head": ("lm_head.weight", "output.weight"),
}
_LAYER = {
    "attention_norm": (("input_layernorm.weight",), ("attn_norm.weight",)),
    "qkv": (
        ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
        ("attn_q.weight", "attn_k.weight", "attn_v.weight"),
    ),
    "qkv_bias": (
        ("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"),
        ("attn_q.bias", "attn_k.bias", "attn_v.bias"),
    ),
    "q_norm": (("self_attn.q_norm.weight",), ("attn_q_norm.weight",)),
    "k_norm": (("self_attn.k_norm.weight",), ("attn_k_norm.weight",)),
    "out": (("self_attn.o_proj.weight",), ("attn_output.weight",)),
    "feed_norm": (("post_attention_layernorm.weight",), ("ffn_norm.weight",)),
    "gate_up": (("mlp.gate_proj.weight", "mlp.up_proj.weight"), ("ffn_gate.weight", "ffn_up.weight")),
    "down": (("mlp.down_proj.weight",), ("ffn_down.weight",)),
}


class Checkpoint(Protocol):
    """The tensors of one model on disk."""

    def parts(self, name: str) -> tuple[str, ...]:
        """The file's names of the tensors that make ours."""
        ...

    def read(self, part: str) -> torch.Tensor:
        """One of the file's tensors, as kept there or in float32. Raises ModelError if it is missing or damaged."""
        ...

    def extras(self) -> dict[str, torch.Tensor]:
        """Tensors beside the weights that the model takes when they are there."""
        ...


def _split(name: str) -> tuple[str, str]:
    layer, _, kind = name.rpartition(".")
    return layer, kind


class FolderCheckpoint:
    """A folder with model.safetensors, or with shards and model.safetensors.index.json."""

    def __init__(self, folder: Path) -> None:
        from safetensors import SafetensorError, safe_open

        self._folder = folder
        self._error: type[Exception] = SafetensorError
        self._files: dict[str, Any] = {}
        self._file_of: dict[str, str] = {}
        try:
            for file in safetensors_files(folder):
                self._files[file.name] = safe_open(file, framework="pt")
                self._file_of |= dict.fromkeys(self._files[file.name].keys(), file.name)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{folder}: cannot read its safetensors: {error}; fetch the model again") from error

    def parts(self, name: str) -> tuple[str, ...]:
        """See Checkpoint."""
        layer, kind = _split(name)
        if not layer:
            return (_TOP[name][0],)
        return tuple(f"model.layers.{layer}.{part}" for part in _LAYER[kind][0])

    def read(self, part: str) -> torch.Tensor:
        """See Checkpoint."""
        if part not in self._file_of:
            raise ModelError(f"{self._folder}: the tensor {part} is missing; is this a model of the Llama family?")
        tensor: torch.Tensor = self._files[self._file_of[part]].get_tensor(part)
        return tensor

    def extras(self) -> dict[str, torch.Tensor]:
        """See Checkpoint."""
        return {}


class GgufCheckpoint:
    """A GGUF file. Its q and k rows are interleaved for llama models and are put back in order here."""

    def __init__(self, file: GgufFile, arch: Architecture, path: Path) -> None:
        self._file = file
        self._arch = arch
        self._path = path

    def parts(self, name: str) -> tuple[str, ...]:
        """See Checkpoint."""
        layer, kind = _split(name)
        if not layer:
            return (_TOP[name][1],)
        return tuple(f"blk.{layer}.{part}" for part in _LAYER[kind][1])

    def read(self, part: str) -> torch.Tensor:
        """See Checkpoint."""
        if part not in self._file.names:
            raise ModelError(f"{self._path}: the tensor {part} is missing; is this a model of the Llama family?")
        tensor = self._file.read(part)
        if self._arch.family == "llama" and ".attn_q." in part:
            return in_halves(tensor, self._arch.heads)
        if self._arch.family == "llama" and ".attn_k." in part:
            return in_halves(tensor, self._arch.kv_heads)
        return tensor

    def extras(self) -> dict[str, torch.Tensor]:
        """See Checkpoint."""
        if "rope_freqs.weight" in self._file.names:
            return {"rope_factors": self._file.read("rope_freqs.weight")}
        return {}


def in_halves(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of each head from pairs (0, d/2, 1, d/2 + 1 ...), as GGUF keeps them, to halves, as we turn them."""
    grouped = tensor.reshape(heads, tensor.shape[0] // heads // 2, 2, *tensor.shape[1:])
    return grouped.swapaxes(1, 2).reshape(tensor.shape)


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def safetensors_files(folder: Path) -> list[Path]:
    """The weight files of a model folder. Raises ModelError when there are none."""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        try:
            names = set(msgspec.json.decode(index.read_bytes(), type=_Index).weight_map.values())
        except msgspec.DecodeError as error:
            raise ModelError(f"{index}: not an index of safetensors shards: {error}") from error
        files = [folder / name for name in sorted(names)]
    else:
        files = [folder / "model.safetensors"]
    for file in files:
        if not file.is_file():
            raise ModelError(f"{file}: missing; a model folder holds config.json, tokenizer.json and safetensors")
    return files
