"""An exact integer product on the engine's own device, proven by a constant: what is wrong with it is a fault.

The matrices, the proof and the constants are those of engine.diag.exact; here one product is one piece, small enough
to be done between two requests. The result of the largest has tiles for every multiprocessor of a board, several
times over. Beside float arithmetic the tensor cores' integers are asked (int8 in, int32 out), which never round.
"""

from collections.abc import Iterator

import torch

from engine.diag.bench import CPU, CUDA, Bench
from engine.diag.exact import CPU_KINDS, KINDS, KNOWN, Shape, checksum, left, product, right
from engine.health.outcome import Outcome, Told, passed, problem

INT8 = "int8"
_INT8_FROM = (8, 0)  # compute capability whose cuBLAS multiplies int8


def kinds_of(device: torch.device) -> tuple[str, ...]:
    """The kinds of arithmetic that are asked on this device."""
    if device.type != "cuda":
        return (*CPU_KINDS, INT8)
    return (*KINDS, INT8) if torch.cuda.get_device_capability(device) >= _INT8_FROM else KINDS


def check_products(bench: Bench, kinds: tuple[str, ...]) -> Iterator[Told | None]:
    """One product a piece; at the end what came of them."""
    wrong: list[str] = []
    for shape in (CUDA if bench.is_cuda else CPU).shapes:
        for kind in kinds:
            if checksum(_product(bench, shape, kind)) != KNOWN[shape]:
                wrong.append(f"{kind} {'x'.join(map(str, shape))}")
            yield None
    yield problem(Outcome.WRONG_PRODUCT, f"exact products came out wrong: {', '.join(wrong)}") if wrong else passed()


def _product(bench: Bench, shape: Shape, kind: str) -> torch.Tensor:
    m, k, n = shape
    a, b = left(m, k), right(k, n)
    if kind != INT8:
        found: torch.Tensor = product(bench, a, b, kind)
        return found
    result = torch._int_mm(a.to(bench.device, torch.int8), b.to(bench.device, torch.int8))  # noqa: SLF001 - its only name
    answer: torch.Tensor = bench.result(result)
    return answer.cpu().to(torch.int64)
