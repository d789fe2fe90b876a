"""What a board can do at best, by its name: the figures that active checks compare with.

Dense peaks of the vendor's data sheets, without sparsity. NVLink is the sum of both directions of one GPU. A board that
is not listed has no figure, and what it does is unknown rather than slow. Boards whose published figures differ between
sources are left out. First match wins; ``pattern`` is a regular expression on NVML's name.
"""

import re

import msgspec

GIB, GB, TERA = 2**30, 1e9, 1e12


class Spec(msgspec.Struct, frozen=True):
    """One board's peaks: bytes a second of memory and NVLink, operations a second of dense bf16 products.

    ``memory_bytes`` is what its name promises, in GiB; driver and ECC keep 1 to 6 per cent of it.
    """

    name: str
    pattern: str
    memory_bytes: float
    memory_bytes_per_s: float
    bf16_flops_per_s: float
    nvlink_bytes_per_s: float
    source: str


_SHEET, _BRIEF = "NVIDIA data sheet", "NVIDIA Blackwell technical brief"
# name, pattern, memory GiB, memory GB/s, dense bf16 TFLOP/s, NVLink GB/s, source
_ROWS: tuple[tuple[str, str, float, float, float, float, str], ...] = (
    ("A10", r"NVIDIA A10$", 24, 600, 125, 0, _SHEET),
    ("L4", r"NVIDIA L4$", 24, 300, 121, 0, f"{_SHEET}, halved: given with sparsity"),
    ("L40S", r"NVIDIA L40S", 48, 864, 362, 0, _SHEET),
    # NVLink of the PCIe boards is a bridge: nobody can tell by the name
    ("A100-PCIe-40GB", r"A100-PCIE-40GB", 40, 1555, 312, 0, _SHEET),
    ("A100-SXM-40GB", r"A100-SXM4-40GB", 40, 1555, 312, 600, _SHEET),
    ("A100-PCIe-80GB", r"A100 80GB PCIe", 80, 1935, 312, 0, _SHEET),
    ("A100-SXM-80GB", r"A100-SXM4-80GB", 80, 2039, 312, 600, _SHEET),
    ("H100-SXM", r"NVIDIA H100 80GB HBM3", 80, 3350, 989.4, 900, f"{_SHEET}, halved: given with sparsity"),
    ("H100-PCIe", r"NVIDIA H100 PCIe", 80, 2000, 756, 0, f"{_SHEET}, halved: given with sparsity"),
    ("H100-NVL", r"NVIDIA H100 NVL", 94, 3900, 835.5, 0, f"{_SHEET}, halved: given with sparsity"),
    ("H200-NVL", r"NVIDIA H200 NVL", 141, 4800, 835.5, 0, f"{_SHEET}, halved: given with sparsity"),
    ("H200-SXM", r"NVIDIA H200$", 141, 4800, 989.4, 900, f"{_SHEET}, halved: given with sparsity"),
    ("GB200", r"NVIDIA GB200", 186, 8000, 2500, 1800, _BRIEF),
    ("B200", r"NVIDIA B200", 180, 7700, 2250, 1800, f"{_BRIEF}; the lower of two figures for its memory"),
)
SPECS = tuple(
    Spec(name, pattern, size * GIB, memory * GB, flops * TERA, link * GB, source)
    for name, pattern, size, memory, flops, link, source in _ROWS
)

# Bytes a second of one lane each way, after line coding (PCI-SIG: 8b/10b up to 2, 128b/130b from 3 on, flits in 6).
_LANE = {1: 0.25 * GB, 2: 0.5 * GB, 3: 0.985 * GB, 4: 1.969 * GB, 5: 3.938 * GB, 6: 7.563 * GB}


def spec_of(board: str | None) -> Spec | None:
    """The row of a board; None if it is not listed."""
    return next((spec for spec in SPECS if re.search(spec.pattern, board)), None) if board else None


def spec_named(word: str) -> Spec | None:
    """The row that a person means by a short name (L40S, h200-sxm), or by the board's own; None if no single one is."""
    wanted = word.lower()
    exact = next((spec for spec in SPECS if spec.name.lower() == wanted), None)
    begun = [spec for spec in SPECS if spec.name.lower().startswith(wanted)]
    return exact or (begun[0] if len(begun) == 1 else spec_of(word))


def pcie_bytes_per_s(generation: int | None, width: int | None) -> float | None:
    """What a PCIe link carries each way; None if it is not known."""
    lane = _LANE.get(generation or 0)
    return lane * width if lane and width else None
