"""GGUF files: metadata and tensors, read from a map of the file.

The ``gguf`` library knows all quantisations, and its dequantisation is used here. Its reader is not: it makes an
array object of every token and merge of the vocabulary (2 to 5 seconds for 98,000 of them), where this one
takes 0.1 s. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vocab.errors import ModelError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32  # of tensors, where the file does not say
_DEEPEST = 4  # arrays within arrays; writers use one


class _Cursor:
    """Values of the file's head, one after the other."""

    def __init__(self, raw: mmap.mmap) -> None:
        self.at = 0
        self._raw = raw

    def take(self, form: str) -> Any:
        value = struct.unpack_from("<" + form, self._raw, self.at)
        self.at += struct.calcsize("<" + form)
        return value[0] if len(value) == 1 else value

    def text(self) -> str:
        size = self.take("Q")
        if size > len(self._raw) - self.at:
            raise struct.error(f"a text of {size} bytes reaches past the end")
        self.at += size
        return self._raw[self.at - size : self.at].decode("utf-8", errors="replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.take("I"), self.take("Q")
            if depth >= _DEEPEST or count > len(self._raw) - self.at:
                raise struct.error(f"an array of {count} values, {depth} deep, cannot be in it")
            if inner in _SCALARS and count > 1:
                return list(self.take(f"{count}{_SCALARS[inner]}"))
            return [self.value(inner, depth + 1) for _ in range(count)]
        return self.take(_SCALARS[kind])


class _Place:
    """Where one tensor lies: its shape (rows first), its type number, its offset in bytes."""

    def __init__(self, shape: tuple[int, ...], kind: int, offset: int) -> None:
        self.shape, self.kind, self.offset = shape, kind, offset


class GgufFile:
    """An open GGUF file. ``meta`` has its metadata, ``read`` gives tensors in float32."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self._raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise ModelError(f"{path}: cannot read it: {error}") from error
        if self._raw[:4] != b"GGUF":
            raise ModelError(f"{path}: not a GGUF file (it does not begin with GGUF)")
        try:
            self.meta, self._places = self._head()
        except (struct.error, KeyError) as error:
            raise ModelError(f"{path}: the file is damaged or cut short: {error}; fetch it again") from error

    def _head(self) -> tuple[dict[str, Any], dict[str, _Place]]:
        cursor = _Cursor(self._raw)
        _, version, tensors, values = cursor.take("4sIQQ")
        if version not in {2, 3}:
            raise ModelError(f"{self._path}: GGUF version {version} is not supported, only 2 and 3")
        meta = {}
        for _ in range(values):
            key = cursor.text()
            meta[key] = cursor.value(cursor.take("I"))
        places = {}
        for _ in range(tensors):
            name = cursor.text()
            sizes = [cursor.take("Q") for _ in range(cursor.take("I"))]
            kind, offset = cursor.take("I"), cursor.take("Q")
            places[name] = _Place(tuple(reversed(sizes)), kind, offset)
        align = meta.get("general.alignment", _ALIGNMENT)
        if not isinstance(align, int) or align <= 0:
            raise ModelError(f"{self._path}: general.alignment is {align!r}: it must be a number of bytes")
        start = -(-cursor.at // align) * align
        for place in places.values():
            place.offset += start
        return meta, places

    @property
    def names(self) -> frozenset[str]:
        """The tensors in the file."""
        return frozenset(self._places)

    def read(self, name: str) -> torch.Tensor:
        """The tensor, dequantized to float32, rows first. Raises ModelError."""
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize

        place = self._places[name]
        try:
            kind = GGMLQuantizationType(place.kind)
            per_block, block_bytes = GGML_QUANT_SIZES[kind]
            row_bytes = place.shape[-1] // per_block * block_bytes
            rows = int(np.prod(place.shape[:-1], dtype=np.int64))
            raw = np.frombuffer(self._raw, np.uint8, rows * row_bytes, place.offset)
            if kind is GGMLQuantizationType.F32:
                values = raw.view("<f4").copy()
            else:
                values = np.ascontiguousarray(dequantize(raw.reshape(rows, row_bytes), kind), dtype=np.float32)
            return torch.from_numpy(values).reshape(place.shape)
        except (ValueError, IndexError, KeyError, NotImplementedError, OverflowError, RuntimeError) as error:
            raise ModelError(f"{self._path}: tensor {name} cannot be read: {error}") from error
