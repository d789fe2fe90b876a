"""An integer product that floating-point hardware must get right to the last bit, and one number that proves it.

*Exact.* A (m × k) and B (k × n) hold integers from -8 to 8. Each is exact in TF32 (10 bits of mantissa) and in wider
types; each product is at most 64 in size, and each partial sum at most 64 k ≤ 64 · 4096 = 2**18, far below 2**24, up to
which float32 holds every integer. So no rounding happens anywhere, and the result is the same for every order of
summation, tile size and number of SMs: what differs is a fault, never noise.

*Proof.* C is not compared with a second product. With fixed vectors u and v modulo the prime P, the sum
``s = Σ u[i] C[i, j] v[j]`` equals ``(uᵀ A) (B v)`` modulo P, for C = A B. That is Freivalds' check. A wrong C passes
only if its error E happens to give ``uᵀ E v = 0``: for vectors that were drawn without regard to E that is a chance of
at most 2 / P, below one in 10**8. A single wrong value never passes, as no u or v is 0,
unless it is off by a multiple of P.

*Known beforehand.* A, B, u and v follow from integer formulas without any random generator, so s is a constant of the
shape. ``KNOWN`` holds them, computed once in Python's own integers (``expected``); no device of the node has a say. The
formulas do not repeat within a matrix, so that a tile in the wrong place shows too.
"""

from collections.abc import Iterator
from typing import Any

import torch

from engine.diag.bench import Bench
from vocab.diag import AnyFigures, Multiplied, Unmeasured

TEST = "exact"
P = 536_870_909  # the largest prime below 2**29: u, C (2**18) and 4096 terms still fit 63 bits
PERIOD = 9_973  # a prime above every side: the pattern does not repeat within a matrix
REPEATS = 2
KINDS = ("float32", "tf32", "float64")
CPU_KINDS = ("float32", "float64")

Shape = tuple[int, int, int]

KNOWN: dict[Shape, int] = {
    (4096, 2048, 4096): 284_788_473,
    (4224, 1024, 3968): 369_577_889,
    (2688, 4096, 2816): 21_877_934,
    (256, 256, 256): 406_269_839,
    (192, 320, 128): 400_139_141,
    (384, 64, 448): 115_671_898,
}


def measure(bench: Bench) -> AnyFigures:
    """All shapes in all kinds of arithmetic that the device has."""
    free = bench.free_bytes()
    needed = max(8 * (m * k + k * n + m * n) for m, k, n in bench.sizes.shapes)
    if free is not None and free < needed + bench.sizes.spared_bytes // 4:
        return Unmeasured(test=TEST, why=f"only {free >> 20} MiB of device memory are free")
    wrong: list[str] = []
    made = 0
    for shape in bench.sizes.shapes:
        a, b = left(shape[0], shape[1]), right(shape[1], shape[2])
        for kind in KINDS if bench.is_cuda else CPU_KINDS:
            for _ in range(REPEATS):
                made += 1
                if checksum(product(bench, a, b, kind)) != KNOWN[shape]:
                    wrong.append(f"{kind} {'x'.join(map(str, shape))}")
    return Multiplied(products=made, wrong=tuple(wrong))


def product(bench: Bench, a: Any, b: Any, kind: str) -> Any:
    """A B on the device, brought to the host as int64 (m × n)."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    try:
        dtype = torch.float64 if kind == "float64" else torch.float32
        result = bench.result(a.to(bench.device, dtype) @ b.to(bench.device, dtype))
        return result.cpu().to(torch.int64)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def checksum(result: Any) -> int:
    """``Σ u[i] C[i, j] v[j]`` modulo P, on the host, for C of int64 (m × n)."""
    m, n = result.shape
    weights = torch.tensor(list(column_weights(n)), dtype=torch.int64)
    rows: list[int] = (
        (result * weights).sum(dim=1) % P
    ).tolist()  # a term is below 2**47, and a row has fewer than 2**13 of them
    return sum(weight * row for weight, row in zip(row_weights(m), rows, strict=True)) % P


def left(m: int, k: int) -> Any:
    """A of int64 (m × k), integers from -8 to 8."""
    rows, columns = torch.arange(m).view(-1, 1), torch.arange(k).view(1, -1)
    return (rows * 7_919 + columns * 104_729 + rows * columns * 13) % PERIOD % 17 - 8


def right(k: int, n: int) -> Any:
    """B of int64 (k × n), integers from -8 to 8."""
    rows, columns = torch.arange(k).view(-1, 1), torch.arange(n).view(1, -1)
    return (rows * 15_485_863 + columns * 1_299_709 + rows * columns * 29) % PERIOD % 17 - 8


def row_weights(m: int) -> Iterator[int]:
    """u: no entry is 0."""
    return (1 + (48_271 * (index + 1) ** 2 + 11 * index) % (P - 1) for index in range(m))


def column_weights(n: int) -> Iterator[int]:
    """v: no entry is 0."""
    return (1 + (69_621 * (index + 1) ** 2 + 13 * index) % (P - 1) for index in range(n))


def expected(shape: Shape) -> int:
    """The checksum of a shape in Python's integers alone: (uᵀ A) (B v) modulo P."""
    m, k, n = shape
    u, v = list(row_weights(m)), list(column_weights(n))
    total = 0
    for j in range(k):
        ua = sum(u[i] * ((i * 7_919 + j * 104_729 + i * j * 13) % PERIOD % 17 - 8) for i in range(m)) % P
        bv = sum(((j * 15_485_863 + c * 1_299_709 + j * c * 29) % PERIOD % 17 - 8) * v[c] for c in range(n)) % P
        total += ua * bv
    return total % P
