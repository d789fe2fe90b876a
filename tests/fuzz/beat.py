"""A replica's pulse: any 128 bytes are a beat or none, and a beat packs to what it was read from."""

from collections.abc import Iterator

from tests.fuzz.target import Target
from vocab.beat import MAGIC, SIZE, Beat, pack, unpack


def one(data: bytes) -> None:
    """The bytes of the file."""
    for raw in (data, MAGIC + data):
        beat = unpack(raw)
        if beat is not None and beat.kv_ratio == beat.kv_ratio:
            assert unpack(pack(beat, 2)) == beat


def seeds() -> Iterator[bytes]:
    """A whole beat, a torn one, one under way."""
    whole = pack(Beat(pid=7, ready=True, admitting=True, step=3, tokens=40, kv_ratio=0.5), 2)
    yield whole
    yield whole[: SIZE // 2]
    yield whole[:4] + b"\1" + whole[5:]


TARGET = Target(one, seeds)
