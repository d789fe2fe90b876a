"""GGUF files: a damaged head is a ModelError that says so, never anything else."""

import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.files.gguf_file import GgufFile
from tests.fuzz.target import Target
from vocab.errors import ModelError

_HEAD = b"GGUF" + struct.pack("<IQQ", 3, 1, 3)


def one(data: bytes) -> None:
    """The file, with and without a head that is right."""
    with TemporaryDirectory() as place:
        path = Path(place) / "model.gguf"
        for raw in (data, b"GGUF\3\0\0\0" + data):
            path.write_bytes(raw)
            try:
                file = GgufFile(path)
                for name in file.names:
                    file.read(name)
            except ModelError:
                continue


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def seeds() -> Iterator[bytes]:
    """A small whole file: a number, a text, an array of texts, one tensor."""
    meta = _text("general.alignment") + struct.pack("<II", 4, 32)
    meta += _text("general.name") + struct.pack("<I", 8) + _text("tiny")
    meta += _text("tokens") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("b")
    tensor = _text("w") + struct.pack("<IQQIQ", 2, 4, 2, 0, 0)
    head = _HEAD + meta + tensor
    yield head.ljust(-(-len(head) // 32) * 32, b"\0") + struct.pack("<8f", *range(8))
    yield head
    yield b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + _text("x") + struct.pack("<IIQIIQ", 9, 9, 1, 9, 0, 1)


TARGET = Target(one, seeds)
