"""States and the moves between them, as tables. The pictures in docs are drawn from these."""

from enum import StrEnum


class Level(StrEnum):
    """What automation may do, in order; each level includes those before it."""

    OBSERVE = "observe"
    FENCE = "fence"
    CORDON = "cordon"
    REPAIR = "repair"

    def allows(self, needed: "Level") -> bool:
        """Whether this level includes ``needed``."""
        return _LEVELS[self] >= _LEVELS[needed]


_LEVELS = {level: rank for rank, level in enumerate(Level)}


class Health(StrEnum):
    """What the open conditions of a GPU say of it."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    FAILED = "failed"
    LOST = "lost"


class Phase(StrEnum):
    """Where a GPU stands on a fault's way."""

    IN_SERVICE = "in_service"
    FENCED = "fenced"
    DRAINING = "draining"
    REPAIRING = "repairing"
    VALIDATING = "validating"
    PROBATION = "probation"
    QUARANTINED = "quarantined"
    REMOVED = "removed"


_P = Phase
_AWAY = frozenset({_P.REPAIRING, _P.VALIDATING, _P.QUARANTINED, _P.REMOVED})  # a person may order these at any time
PHASE_MOVES: dict[Phase, frozenset[Phase]] = {
    _P.IN_SERVICE: _AWAY | {_P.FENCED, _P.DRAINING},
    _P.FENCED: _AWAY | {_P.IN_SERVICE, _P.DRAINING},
    _P.DRAINING: _AWAY | {_P.IN_SERVICE, _P.FENCED},
    _P.REPAIRING: (_AWAY - {_P.REPAIRING}) | {_P.IN_SERVICE},
    _P.VALIDATING: (_AWAY - {_P.VALIDATING}) | {_P.IN_SERVICE, _P.PROBATION},
    _P.PROBATION: (_AWAY - {_P.VALIDATING}) | {_P.IN_SERVICE, _P.DRAINING},
    _P.QUARANTINED: frozenset({_P.VALIDATING, _P.IN_SERVICE, _P.REMOVED}),
    _P.REMOVED: frozenset({_P.VALIDATING, _P.IN_SERVICE}),
}


def shown(*, health: Health, fresh: bool, held: bool, phase: Phase) -> str:
    """The one word for a GPU's state: first match of removed, quarantined, the phase, lost, unknown, ..."""
    if phase is not Phase.IN_SERVICE:
        return phase.value
    if health is Health.LOST:
        return "lost"
    if not fresh:
        return "unknown"
    if held:
        return "cordoned"
    return health.value


class ReplicaState(StrEnum):
    """What a replica is doing."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    STALLED = "stalled"
    DRAINING = "draining"
    FAILED = "failed"
    STOPPED = "stopped"
    CRASH_LOOP = "crash_loop"
    STRANDED = "stranded"


_R = ReplicaState
_LIVE = frozenset({_R.READY, _R.DEGRADED, _R.STALLED, _R.STRANDED})
REPLICA_MOVES: dict[ReplicaState, frozenset[ReplicaState]] = {
    _R.STARTING: frozenset({_R.READY, _R.DRAINING, _R.FAILED, _R.STOPPED, _R.CRASH_LOOP, _R.STRANDED}),
    **{state: (_LIVE - {state}) | {_R.STARTING, _R.DRAINING, _R.FAILED, _R.STOPPED} for state in _LIVE},
    _R.DRAINING: frozenset({_R.READY, _R.FAILED, _R.STOPPED, _R.STRANDED}),
    _R.FAILED: frozenset({_R.STARTING, _R.STOPPED, _R.CRASH_LOOP, _R.STRANDED}),
    _R.STOPPED: frozenset({_R.STARTING}),
    _R.CRASH_LOOP: frozenset({_R.STARTING, _R.STOPPED}),
}


class NodeState(StrEnum):
    """What the controller knows of a node."""

    LIVE = "live"
    UNKNOWN = "unknown"
    LOST = "lost"
    REMOVED = "removed"


class ClearsOn(StrEnum):
    """What ends a condition."""

    SIGNAL = "signal"
    RESET = "reset"
    REBOOT = "reboot"
    PERSON = "person"


class ActionKind(StrEnum):
    """The orders that exist."""

    FENCE = "fence"
    UNFENCE = "unfence"
    DRAIN = "drain"
    START_REPLICA = "start_replica"
    STOP_REPLICA = "stop_replica"
    RESTART_REPLICA = "restart_replica"
    RESET_GPU = "reset_gpu"
    REBOOT_NODE = "reboot_node"
    POWER_CYCLE = "power_cycle"
    VALIDATE = "validate"
    RELEASE = "release"
    QUARANTINE = "quarantine"


REPAIRS = (ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.POWER_CYCLE)  # by harshness; people approve these

NEEDED_LEVEL: dict[ActionKind, Level] = {
    ActionKind.FENCE: Level.FENCE,
    ActionKind.UNFENCE: Level.OBSERVE,
    ActionKind.DRAIN: Level.CORDON,
    ActionKind.START_REPLICA: Level.OBSERVE,
    ActionKind.STOP_REPLICA: Level.CORDON,
    ActionKind.RESTART_REPLICA: Level.REPAIR,
    ActionKind.RESET_GPU: Level.REPAIR,
    ActionKind.REBOOT_NODE: Level.REPAIR,
    ActionKind.POWER_CYCLE: Level.REPAIR,
    ActionKind.VALIDATE: Level.CORDON,
    ActionKind.RELEASE: Level.OBSERVE,
    ActionKind.QUARANTINE: Level.CORDON,
}


class ActionState(StrEnum):
    """How far an action is. ``would``: a level, shadow or pause forbids it; ``waiting``: for budget, drain, person."""

    WOULD = "would"
    WAITING = "waiting"
    ORDERED = "ordered"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    COVERED = "covered"
    REFUSED = "refused"


TERMINAL_ACTIONS = frozenset(
    {
        ActionState.DONE,
        ActionState.FAILED,
        ActionState.TIMED_OUT,
        ActionState.CANCELLED,
        ActionState.EXPIRED,
        ActionState.COVERED,
        ActionState.REFUSED,
    }
)
