"""What a child process says to the agent: length-prefixed MessagePack frames on a pipe.

And which slot of the call table belongs to which of its threads.
"""

import struct
from typing import Final

import msgspec

from vocab.observations import Check, DriverEvent, GpuIdentity, GpuSample

LENGTH: Final = struct.Struct("<I")
MAX_FRAME = 2**20  # a sample of 18 links is about 4 KiB

NODE_SLOT, EVENT_SLOT, FIRST_GPU_SLOT = 0, 1, 2
MAX_GPUS = 16
SLOTS = FIRST_GPU_SLOT + MAX_GPUS


class Opened(msgspec.Struct, frozen=True, tag_field="frame"):
    """The library is initialised or the host engine reached (again after each change of the inventory)."""

    driver: str | None
    library: str | None
    count: int  # as the driver gives it; more than ``gpus`` if some cannot be looked up
    gpus: tuple[GpuIdentity, ...]
    cuda: str | None = None


class Failed(msgspec.Struct, frozen=True, tag_field="frame"):
    """What the child reads cannot be used; it ends after this. ``error`` is a name of NVML or DCGM."""

    error: str


class Observed(msgspec.Struct, frozen=True, tag_field="frame"):
    """One read of one GPU, an event that was pushed, or what a health watch says."""

    observation: GpuSample | DriverEvent | Check


class Sampled(msgspec.Struct, frozen=True, tag_field="frame"):
    """Reads of several GPUs, made at the same moment; ``read_s`` is how long the longest took."""

    samples: tuple[GpuSample, ...]
    read_s: float = 0.0


class Limited(msgspec.Struct, frozen=True, tag_field="frame"):
    """What the child cannot read: ``unsupported`` never, ``error`` says what else not (None: it reads the rest)."""

    unsupported: tuple[str, ...]
    error: str | None = None


class Stacks(msgspec.Struct, frozen=True, tag_field="frame"):
    """Where the threads of the child stand in its own program, as it was asked."""

    text: str


Frame = Opened | Failed | Observed | Sampled | Limited | Stacks

decode = msgspec.msgpack.Decoder(Frame).decode


def encode(frame: Frame) -> bytes:
    """The frame with its length before it."""
    body = msgspec.msgpack.encode(frame)
    return LENGTH.pack(len(body)) + body
