"""Active checks: what may be asked for, what the program that measures prints, and what is told on the way.

The program measures and judges nothing: a figure is what was counted or timed, ``Unmeasured`` says why there is none.
"""

from enum import StrEnum

import msgspec

from vocab.observations import Check


class Grade(StrEnum):
    """How deep a check goes; each grade includes those before it."""

    QUICK = "quick"  # seconds, harmless beside serving
    MEDIUM = "medium"  # a minute or two, on a GPU that is held and empty
    BURN = "burn"  # minutes of full power, on a node that serves nothing

    def includes(self, other: "Grade") -> bool:
        """Whether a run of this grade makes the checks of the other too."""
        grades = list(Grade)
        return grades.index(self) >= grades.index(other)


class DiagRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``POST /api/v1/diag``: these GPUs (UUIDs; all of the node, if none is named)."""

    gpus: tuple[str, ...] = ()
    grade: Grade = Grade.QUICK


class Figures(msgspec.Struct, frozen=True, kw_only=True, tag_field="figures"):
    """Base of what the measuring program prints, one JSON object a line."""


class Begun(Figures, frozen=True, kw_only=True, tag="begun"):
    """A test has begun: from now on its deadline counts."""

    test: str


class Unmeasured(Figures, frozen=True, kw_only=True, tag="unmeasured"):
    """A test gave no figure; ``error`` is CUDA's words where CUDA is the reason."""

    test: str
    why: str
    error: str | None = None


class Opened(Figures, frozen=True, kw_only=True, tag="open"):
    """The device answered; ``board`` is its name, ``device`` cuda or cpu."""

    device: str
    board: str
    memory_bytes: int | None = None


class Multiplied(Figures, frozen=True, kw_only=True, tag="exact"):
    """Exact integer products: how many were made, which came out wrong (as ``tf32 4096x2048x4096``)."""

    products: int
    wrong: tuple[str, ...] = ()


class Patterned(Figures, frozen=True, kw_only=True, tag="memory"):
    """Memory written and read back: bytes, patterns, and words that came back changed."""

    device: str
    tested_bytes: int
    patterns: int
    wrong_words: int = 0


class Copied(Figures, frozen=True, kw_only=True, tag="copies"):
    """Bytes a second from pinned host memory, to it, and within the device (read and write both counted)."""

    device: str
    up_bytes_per_s: float
    down_bytes_per_s: float
    within_bytes_per_s: float


class Computed(Figures, frozen=True, kw_only=True, tag="rate"):
    """Floating-point operations a second of large products in ``kind`` (bf16 on a GPU)."""

    device: str
    kind: str
    flops_per_s: float


class Reduced(Figures, frozen=True, kw_only=True, tag="allreduce"):
    """A sum over all GPUs: words that came out wrong, and the bus bandwidth as NCCL's tests define it."""

    gpus: int
    wrong_words: int
    bus_bytes_per_s: float


class Burned(Figures, frozen=True, kw_only=True, tag="burn"):
    """Products at full power for ``seconds``; the rate of the first and of the last tenth."""

    device: str
    seconds: float
    products: int
    wrong: int
    first_flops_per_s: float
    last_flops_per_s: float


AnyFigures = Begun | Unmeasured | Opened | Multiplied | Patterned | Copied | Computed | Reduced | Burned


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started", tag_field="diag"):
    """Told while it runs: this test of this GPU has begun."""

    gpu: str
    test: str


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag="checked", tag_field="diag"):
    """Told while it runs: one check has its result."""

    check: Check


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended", tag_field="diag"):
    """The last line: ``why`` is set where it was broken off."""

    why: str = ""


AnyTold = Started | Checked | Ended
