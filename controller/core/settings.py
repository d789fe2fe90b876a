"""The numbers of the policy, each with its reason. A policy file holds differences only."""

import msgspec

from vocab.states import Level


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The budget: what harmful acts must fit into."""

    window_s: float = 600.0  # over which new cordons are counted
    cordons: int = 8  # GPUs newly cordoned in one window: a whole node, no more
    cordons_ratio: float = 0.5  # of all GPUs, in one window; never less than one GPU
    repairs: int = 1  # resets, reboots and power cycles at one time, up to 20 nodes; one more for each 20
    attempts: int = 2  # of one rung for one fault, before the next rung
    starts: int = 3  # failed starts of one deployment in a window, before it waits


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a core decides. ``epoch`` rises when a database was restored; it leads every token."""

    epoch: int = 1
    policy: str = "builtin-1"  # version, written on every action
    level: Level = Level.REPAIR  # the highest level anywhere; a node's own level may be lower
    limits: Limits = Limits()


COLD_START_S = 30.0  # after a start, how long nodes that were live are waited for before harmful acts
SILENT_GAPS = 3.0  # usual gaps without a report after which a node is unknown
SILENT_LEAST_S = 15.0  # ... but never sooner than this
STALE_PERIODS = 5.0  # sample periods without a reading after which a GPU is not fresh
STALE_LEAST_S = 60.0  # ... but never sooner than this
OBSERVERS_FOR_LOST = 2  # others that must fail to reach a silent node before it is lost
OBSERVED_S = 30.0  # how long such an observation counts
CORRELATION_S = 60.0  # faults of one GPU this close together are one incident
EVIDENCE_S = 600.0  # a decision that waited longer than this needs fresh evidence
PROBATION_S = 600.0  # without a new condition, after validation
PROVEN_S = 120.0  # after a finished repair, how long its conditions may take to clear
START_TTL_S = 600.0  # from order to ready: weights of the largest models load in minutes
STOP_GRACE_S = 30.0  # beyond kill_s until a stop is called timed out: the node's clock started later than ours
RESET_TTL_S = 120.0  # a GPU reset takes seconds, its preparation a minute
REBOOT_TTL_S = 1200.0  # not back in 20 minutes is an outcome
VALIDATE_TTL_S = 900.0
