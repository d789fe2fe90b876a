"""The tests of each grade, and how long each may take before its process is killed.

Deadlines are generous: what is slow is told by its figure, and a deadline only tells what hangs.
"""

from vocab.diag import Grade

OPEN, EXACT, MEMORY, COPIES, RATE, BURN, ALLREDUCE = (
    "open", "exact", "memory", "copies", "rate", "burn", "allreduce",
)  # fmt: skip
BURN_S = 180.0  # a board and its heat sink settle within two to three minutes
BURN_ON_CPU_S = 3.0  # a virtual GPU has no heat sink

# The tests that one grade adds to those before it.
_ADDED = {Grade.QUICK: (OPEN, EXACT), Grade.MEDIUM: (MEMORY, COPIES, RATE), Grade.BURN: (BURN,)}
DEADLINE_S = {
    OPEN: 120.0,  # the first includes the start of Python and PyTorch: 14 s were seen on a busy machine
    EXACT: 60.0,
    MEMORY: 180.0,  # 180 GB, twelve passes, at a tenth of the memory's speed
    COPIES: 60.0,
    RATE: 60.0,
    ALLREDUCE: 120.0,
    BURN: BURN_S + 60.0,
}
DCGM_LEVELS = {Grade.QUICK: "quick", Grade.MEDIUM: "medium", Grade.BURN: "long"}  # DCGM's levels 1, 2 and 3


def tests_of(grade: Grade) -> tuple[str, ...]:
    """The tests of one GPU, in order."""
    return tuple(test for each, tests in _ADDED.items() if grade.includes(each) for test in tests)


def is_harmless(test: str) -> bool:
    """Whether it may run beside serving."""
    return test in _ADDED[Grade.QUICK]


def burn_s(device: str) -> float:
    """How long to burn."""
    return BURN_S if device == "cuda" else BURN_ON_CPU_S
