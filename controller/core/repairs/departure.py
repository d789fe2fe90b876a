"""GPUs that leave on purpose: a board that was replaced, or given to a virtual machine. And those that come back.

What was wrong with it went with it: its incidents are closed, the policy's hold is lifted, and nothing of it falls on
the board that sits in its place. It stays known, for bad boards travel: one that left with an open fault and turns up
again, on whatever node, is held until a person has looked.
"""

from collections.abc import Iterator

from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import hold_id
from controller.core.policy.policy import OWNER, Leave, may
from controller.core.repairs.release import let_go
from vocab.lines import AnyLine, HoldLine, Subject
from vocab.states import ClearsOn, Level


def close(fleet: Fleet, now: float) -> Iterator[AnyLine]:
    """End the stories of GPUs that have left."""
    for gpu in [gpu for gpu in fleet.ledger.left if fleet.has_left(gpu)]:
        subject, because = Subject(gpu=gpu), fleet.ledger.left[gpu]
        for condition in fleet.conditions_on(subject):
            yield conditions.end(condition, now)
        for key in list(fleet.ledger.incidents_of.get(subject, ())):
            yield from let_go(fleet, fleet.ledger.incidents[key], because, now)


def receive(fleet: Fleet, now: float) -> Iterator[HoldLine]:
    """Hold what left with an open fault and is back."""
    for uuid, incident in fleet.ledger.left_ill.items():
        gpu = fleet.gpus.get(uuid)
        key = hold_id(OWNER, "came back", incident)
        ledger = fleet.ledger
        if gpu is None or not gpu.listed or any(key in known for known in (ledger.holds, ledger.lifted)):
            continue
        fault = ledger.incidents[incident]
        leave = may(fleet, gpu.node, Level.CORDON, now, fault).leave
        if leave is Leave.LATER or (leave is Leave.WOULD and key in ledger.would_holds):
            continue
        yield HoldLine(
            at=now,
            subject=Subject(gpu=uuid),
            id=key,
            op="placed" if leave is Leave.GO else "would_place",
            owner=OWNER,
            reason=f"it was {fault.closed_because} while {fault.code} stood on it, and is back on {gpu.node}",
            incident=incident,
            clears_on=ClearsOn.PERSON,
            rule=fault.code,
        )
