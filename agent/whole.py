"""The whole picture of a GPU, put together from samples that each hold only what was read for them.

What moves fast is read every second, the rest every ten; a sample says what was asked (a value, or an error by name).
What it says nothing of is as it was read last, if that is not too long ago. Judging is not done with this: a value
that was read once must not count twice.
"""

import msgspec

from vocab.observations import GpuSample
from vocab.readings import Readings

CARRY_S = 25.0  # two rounds of what is read every 10 s
_NAMES = Readings.__struct_fields__


def joined(before: GpuSample | None, sample: GpuSample) -> GpuSample:
    """``sample`` with what ``before``, itself whole, knows beyond it. An error of the whole read leaves nothing."""
    if before is None or before.readings is None or sample.readings is None or sample.error is not None:
        return sample
    new, old, errors = sample.readings, before.readings, sample.errors
    carried = {
        name: value
        for name in _NAMES
        if getattr(new, name) is None and (value := getattr(old, name)) is not None and name not in errors
    }
    if not carried and sample.links and sample.processes is not None:
        return sample
    return msgspec.structs.replace(
        sample,
        readings=msgspec.structs.replace(new, **carried),
        errors={**{name: error for name, error in before.errors.items() if getattr(new, name, None) is None}, **errors},
        links=sample.links or ({} if "links" in errors else before.links),
        link_errors=sample.link_errors if sample.links else before.link_errors,
        instances=sample.instances or before.instances,
        processes=before.processes if sample.processes is None and "processes" not in errors else sample.processes,
    )
