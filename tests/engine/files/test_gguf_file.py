"""A GGUF file that somebody else wrote, or that is damaged: read right, or refused with a reason."""

import struct
from pathlib import Path

import pytest

from engine.files.gguf_file import GgufFile
from vocab.errors import ModelError

NUMBER, TEXT, ARRAY = 4, 8, 9


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, values: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + values


def write(path: Path, *pairs: bytes, tensor: bytes = b"") -> Path:
    head = b"GGUF" + struct.pack("<IQQ", 3, bool(tensor), len(pairs))
    path.write_bytes(head + b"".join(pairs) + tensor)
    return path


def test_what_stands_behind_an_empty_array_is_read_right(tmp_path):
    path = write(
        tmp_path / "model",
        pair("none", ARRAY, array(NUMBER, 0)),
        pair("one", ARRAY, array(NUMBER, 1, b"\x07\0\0\0")),
        pair("name", TEXT, text("tiny")),
    )
    assert GgufFile(path).meta == {"none": [], "one": [7], "name": "tiny"}


@pytest.mark.parametrize(
    "damage",
    [
        pair("deep", ARRAY, array(ARRAY, 1) * 5000),
        pair("long", ARRAY, array(TEXT, 1 << 60)),
        pair("long", ARRAY, array(NUMBER, 1 << 60)),
        pair("general.alignment", NUMBER, struct.pack("<I", 0)),
        pair("general.alignment", TEXT, text("32")),
        pair("unknown kind", 99, b""),
    ],
    ids=lambda raw: raw[8:24].split(b"\0")[0].decode(errors="replace"),
)
def test_damaged_head_is_refused(tmp_path, damage):
    with pytest.raises(ModelError, match="model"):
        GgufFile(write(tmp_path / "model", damage))


@pytest.mark.parametrize(
    "place",
    [
        struct.pack("<IQIQ", 1, 4, 0, (1 << 64) - 64),
        struct.pack("<IQQIQ", 2, 1 << 62, 1 << 62, 0, 0),
        struct.pack("<IIQ", 0, 0, 0),
        struct.pack("<IQIQ", 1, 4, 12345, 0),
    ],
    ids=["offset beyond all files", "larger than all memory", "no shape", "unknown type"],
)
def test_damaged_tensor_is_refused(tmp_path, place):
    file = GgufFile(write(tmp_path / "model", tensor=text("w") + place))
    with pytest.raises(ModelError, match="tensor w"):
        file.read("w")
