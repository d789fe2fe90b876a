"""Which GPUs of a node can only be reset together, and which reach each other over NVLink.

Sources: the driver's guides say that GPUs behind the NVSwitches of the A100 generation and before reset together, and
that from the H100 generation on one GPU may be reset alone. GPUs joined by a bridge (NVL pairs) share their links, so
we treat the pair as one; which two are joined the name alone cannot tell, so neighbours by order are taken for pairs.
"""

from collections.abc import Sequence

ALONE, PAIRS, TOGETHER = "alone", "pairs", "together"

# First match wins; ``all`` of the words must stand in the board's name as NVML gives it.
_BOARDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("GB200",), ALONE),  # of an NVL72, which is a rack and no bridge
    (("GB300",), ALONE),
    (("NVL",), PAIRS),  # H100 NVL, H200 NVL
    (("A100", "SXM"), TOGETHER),
    (("A800", "SXM"), TOGETHER),
    (("V100", "SXM"), TOGETHER),
)


def resets(board: str) -> str:
    """How GPUs of this board reset: ``alone``, in ``pairs`` or all ``together``."""
    name = board.upper()
    return next((how for words, how in _BOARDS if all(word in name for word in words)), ALONE)


def reset_group(board: str, uuids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The node's GPUs (in order of index) in groups that only reset together; every GPU is in exactly one group."""
    how = resets(board)
    if how == TOGETHER or (how == PAIRS and len(uuids) % 2):  # one is missing: nobody knows whose neighbour it was
        return (tuple(uuids),) if uuids else ()
    step = 2 if how == PAIRS else 1
    return tuple(tuple(uuids[start : start + step]) for start in range(0, len(uuids), step))


# Boards of which all on a node meet behind NVSwitches; first letters of the name after the maker's. NVL pairs: PAIRS.
_SWITCHED = (
    "A100-SXM",
    "A800-SXM",
    "H100 80GB HBM3",
    "H100 SXM",
    "H200",
    "H800",
    "H20",
    "B200",
    "B300",
    "GB200",
    "GB300",
)


def islands(board: str, uuids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The node's GPUs (in order of index) by NVLink island; empty where the board's name does not tell."""
    name = board.upper().removeprefix("NVIDIA ")
    if "PCIE" in name:
        return ()  # with or without a bridge
    if resets(board) == PAIRS:
        return tuple(tuple(uuids[at : at + 2]) for at in range(0, len(uuids), 2)) if len(uuids) % 2 == 0 else ()
    return (tuple(uuids),) if uuids and name.startswith(_SWITCHED) else ()
