"""``corral record``: what an agent saw of late, with what the fleet was to do, as a recording for ``corral replay``."""

from corral.record.record import record

__all__ = ["record"]
