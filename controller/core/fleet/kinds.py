"""Kinds of actions, in groups that more than one rule names."""

from vocab.states import REPAIRS, ActionKind, ActionState

WIDE = frozenset({ActionKind.REBOOT_NODE, ActionKind.POWER_CYCLE})  # of a whole node
RUNGS = (*REPAIRS, ActionKind.QUARANTINE)  # by harshness
STARTED = frozenset({ActionState.ORDERED, ActionState.RUNNING})
USED_UP = frozenset({ActionState.DONE, ActionState.FAILED, ActionState.TIMED_OUT})  # states of a try that count
