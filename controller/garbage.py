"""The collector of cycles, kept off what lives long.

A fleet of 12,500 nodes is a million objects in no cycle. A full collection walks over all of them, which takes seconds
in which nothing is answered. So what one has found alive is set aside, and none walks over it again before the
next housekeeping (CPython: ``gc.freeze``). What each heartbeat replaces would be walked over all the same, by the
100,000; it is of types that the collector does not know (msgspec: ``gc=False``).
"""

import gc


def set_aside() -> None:
    """From now on, set aside whatever a full collection leaves."""
    if _after not in gc.callbacks:
        gc.callbacks.append(_after)


def _after(phase: str, about: dict[str, int]) -> None:
    if phase == "stop" and about["generation"] == 2:
        gc.freeze()


def collect() -> int:
    """Walk over everything, what was set aside too; how many objects were garbage."""
    gc.unfreeze()
    return gc.collect()
