"""Ids and tokens. An id is a hash of what makes the thing itself, so that deciding twice names it once."""

from hashlib import blake2b


def _hash(*parts: object, size: int = 8) -> str:
    return blake2b("\x1f".join(str(part) for part in parts).encode(), digest_size=size).hexdigest()


def condition_id(event: str, nth: int) -> str:
    """The condition that this event opened for the ``nth`` time (0 first; a fold that grows after it cleared is 1)."""
    return f"c-{_hash('condition', event, nth)}"


def incident_id(event: str, nth: int) -> str:
    """The incident that this event opened for the ``nth`` time."""
    return f"i-{_hash('incident', event, nth)}"


def hold_id(owner: str, *why: object) -> str:
    """The hold of an owner for one reason: an incident, a fence, a person's words."""
    return f"h-{_hash('hold', owner, *why)}"


def action_id(of: str, *why: object) -> str:
    """The action for one purpose and attempt."""
    return f"a-{_hash('action', of, *why)}"


def replica_id(deployment: str, epoch: int, nth: int) -> str:
    """The ``nth`` replica ever of a deployment in this epoch; a restored database does not reuse a name."""
    return f"{deployment}-{_hash('replica', deployment, epoch, nth, size=3)}"


def spread(*parts: object) -> str:
    """Decides ties: the same for the same ids, different for different ones."""
    return _hash("spread", *parts)


def token(epoch: int, number: int) -> str:
    """A fencing token; a later order has a greater one."""
    return f"{epoch}.{number}"


def token_order(text: str) -> tuple[int, int]:
    """A token as numbers to compare; (0, 0) if it is none."""
    epoch, _, number = text.partition(".")
    return (int(epoch), int(number)) if epoch.isdecimal() and number.isdecimal() else (0, 0)
