"""What the NVML child says to the agent: length-prefixed MessagePack frames on a pipe.

And which slot of the call table belongs to which thread.
"""

import struct
from typing import Final

import msgspec

from vocab.observations import DriverEvent, GpuIdentity, GpuSample

LENGTH: Final = struct.Struct("<I")
MAX_FRAME = 2**20  # a sample of 18 links is about 4 KiB

NODE_SLOT, EVENT_SLOT, FIRST_GPU_SLOT = 0, 1, 2
MAX_GPUS = 16
SLOTS = FIRST_GPU_SLOT + MAX_GPUS


class Opened(msgspec.Struct, frozen=True, tag_field="frame"):
    """NVML is initialised (again after each change of the inventory)."""

    driver: str
    library: str
    count: int  # as the driver gives it; more than ``gpus`` if some cannot be looked up
    gpus: tuple[GpuIdentity, ...]


class Failed(msgspec.Struct, frozen=True, tag_field="frame"):
    """NVML cannot be used; the child ends after this. ``error`` is an NVML name."""

    error: str


class Sampled(msgspec.Struct, frozen=True, tag_field="frame"):
    """One read of one GPU."""

    sample: GpuSample


class Pushed(msgspec.Struct, frozen=True, tag_field="frame"):
    """An event that the driver pushed."""

    event: DriverEvent


class Unsupported(msgspec.Struct, frozen=True, tag_field="frame"):
    """Readings that a GPU will never give, learnt since the last such frame."""

    gpu: str
    names: tuple[str, ...]


Frame = Opened | Failed | Sampled | Pushed | Unsupported

decode = msgspec.msgpack.Decoder(Frame).decode


def encode(frame: Frame) -> bytes:
    """The frame with its length before it."""
    body = msgspec.msgpack.encode(frame)
    return LENGTH.pack(len(body)) + body
