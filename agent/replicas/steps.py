"""What the supervisor can do to one replica, one frozen type a step. A step says all that its doing needs."""

import msgspec

from vocab.messages import ReplicaSpec


class Start(msgspec.Struct, frozen=True):
    """Start a process for this spec; ``crashes`` are the unasked ends (monotonic) that count for it."""

    spec: ReplicaSpec
    crashes: tuple[float, ...] = ()

    @property
    def replica(self) -> str:
        """The replica that is meant."""
        return self.spec.replica


class Fence(msgspec.Struct, frozen=True):
    """Tell it to stop admitting: one of its GPUs is fenced."""

    replica: str


class Unfence(msgspec.Struct, frozen=True):
    """Tell it to admit again."""

    replica: str


class Withdraw(msgspec.Struct, frozen=True):
    """Take it out of rotation before the drain itself, so that balancers see it go (``prestop_s``)."""

    replica: str


class Drain(msgspec.Struct, frozen=True):
    """Tell it to end its open requests and exit, within ``ttl_s``."""

    replica: str
    ttl_s: float


class Terminate(msgspec.Struct, frozen=True):
    """SIGTERM: it did not exit in time, or does not answer."""

    replica: str


class Kill(msgspec.Struct, frozen=True):
    """SIGKILL to it and to all that its session left behind."""

    replica: str


class GiveUp(msgspec.Struct, frozen=True):
    """No more restarts: it crashed too often."""

    replica: str


class Forget(msgspec.Struct, frozen=True):
    """It has ended and nobody wants it: drop its records."""

    replica: str


Step = Start | Fence | Unfence | Withdraw | Drain | Terminate | Kill | GiveUp | Forget
