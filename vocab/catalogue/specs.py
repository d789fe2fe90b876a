"""What a board can do at best, by its name: the figures that active checks compare with.

Dense peaks of the vendor's data sheets, without sparsity. NVLink is the sum of both directions of one GPU. A board that
is not listed has no figure, and what it does is unknown rather than slow. Boards whose published figures differ between
sources are left out. First match wins; ``pattern`` is a regular expression on NVML's name.
"""

import re

import msgspec

GB, TERA = 1e9, 1e12


class Spec(msgspec.Struct, frozen=True):
    """One board's peaks: bytes a second of memory and NVLink, operations a second of dense bf16 products."""

    pattern: str
    memory_bytes_per_s: float
    bf16_flops_per_s: float
    nvlink_bytes_per_s: float
    source: str


_SHEET = "NVIDIA data sheet"
# pattern, memory GB/s, dense bf16 TFLOP/s, NVLink GB/s, source
_ROWS: tuple[tuple[str, float, float, float, str], ...] = (
    (r"NVIDIA A10$", 600, 125, 0, _SHEET),
    (r"NVIDIA L4$", 300, 121, 0, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA L40S", 864, 362, 0, _SHEET),
    (r"A100-PCIE-40GB", 1555, 312, 0, _SHEET),  # NVLink by a bridge only: nobody can tell by the name
    (r"A100-SXM4-40GB", 1555, 312, 600, _SHEET),
    (r"A100 80GB PCIe", 1935, 312, 0, _SHEET),
    (r"A100-SXM4-80GB", 2039, 312, 600, _SHEET),
    (r"NVIDIA H100 80GB HBM3", 3350, 989.4, 900, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA H100 PCIe", 2000, 756, 0, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA H100 NVL", 3900, 835.5, 0, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA H200 NVL", 4800, 835.5, 0, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA H200$", 4800, 989.4, 900, f"{_SHEET}, halved: given with sparsity"),
    (r"NVIDIA GB200", 8000, 2500, 1800, "NVIDIA Blackwell technical brief"),
    (r"NVIDIA B200", 7700, 2250, 1800, "NVIDIA Blackwell technical brief; the lower of two figures for its memory"),
)
SPECS = tuple(Spec(name, memory * GB, flops * TERA, link * GB, source) for name, memory, flops, link, source in _ROWS)

# Bytes a second of one lane each way, after line coding (PCI-SIG: 8b/10b up to 2, 128b/130b from 3 on, flits in 6).
_LANE = {1: 0.25 * GB, 2: 0.5 * GB, 3: 0.985 * GB, 4: 1.969 * GB, 5: 3.938 * GB, 6: 7.563 * GB}


def spec_of(board: str | None) -> Spec | None:
    """The row of a board; None if it is not listed."""
    return next((spec for spec in SPECS if re.search(spec.pattern, board)), None) if board else None


def pcie_bytes_per_s(generation: int | None, width: int | None) -> float | None:
    """What a PCIe link carries each way; None if it is not known."""
    lane = _LANE.get(generation or 0)
    return lane * width if lane and width else None
