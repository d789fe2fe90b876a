"""What one parsed record means, before it is known whose it is and whether it was counted."""

from enum import Enum
from typing import Any

import msgspec

from vocab.events import Flag, Recovery, Scope, Severity


class About(Enum):
    """Whose address the record shows."""

    GPU = "gpu"  # of a GPU: one that cannot be looked up is said to be so
    DEVICE = "device"  # of any device, which may be a GPU
    HOST = "host"  # of no GPU


class Part(Enum):
    """How the record stands to others of one fault, which come within moments and count once."""

    WHOLE = "whole"  # the fault itself; what came before it of the same fault was something else
    CLOSING = "closing"  # the fault itself, or the end of what came before it
    PIECE = "piece"  # a part; without a head it stands for the fault
    ECHO = "echo"  # a part if there is a head, else a fault of its own


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """The code, and what differs from its row. ``burst``: equal for the records of one fault on one device.

    ``orphan``: flags of a part without a head. ``clears``: a code whose signal is good again by this record.
    """

    code: str
    severity: Severity | None = None
    recovery: Recovery | None = None
    scope: Scope | None = None
    device: str | None = None
    about: About = About.GPU
    pci: str | None = None
    fields: dict[str, Any] = {}
    flags: tuple[Flag, ...] = ()
    part: Part = Part.WHOLE
    burst: str | None = None
    orphan: tuple[Flag, ...] = ()
    count: int = 1
    clears: str | None = None
