"""Requests as users saw them: too many of a replica's answers are errors or never came.

Judged over at least 20 requests, by our own counts: what a client broke off is neither, and what the engine counts
about itself is shown and never judged. A count that falls is a new start.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.tenants import Look
from vocab.events import Evidence, Source, rfc3339

CODE = "replica_unhealthy"
AT_LEAST = 20  # fewer say nothing: one error in five is one error
BAD_RATIO = 0.2  # a fifth of the answers: far above what overload sheds, far under what a broken replica gives
GOOD_RATIO = 0.05  # well again: hysteresis


class Counts(msgspec.Struct, frozen=True):
    """Answers so far."""

    ok: int = 0
    failed: int = 0
    timed_out: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.ok + self.failed + self.timed_out

    def since(self, before: "Counts") -> "Counts":
        """What came after ``before``."""
        return Counts(self.ok - before.ok, self.failed - before.failed, self.timed_out - before.timed_out)


class Account(msgspec.Struct):
    """One replica's answers: at the start of the batch that is being counted, and as last told."""

    start: Counts
    last: Counts
    said: bool = False


class RequestsProbe(msgspec.Struct):
    """Judges each replica's answers in batches."""

    accounts: dict[str, Account] = {}

    def looked(self, look: Look) -> Sequence[Verdict]:
        """Take one look at one replica."""
        seen, replica = look.seen, look.tenant.replica
        if seen.requests_ok is None and seen.requests_failed is None and seen.requests_timed_out is None:
            return ()
        known = self.accounts.get(replica)
        last = known.last if known else Counts()
        told = Counts(
            last.ok if seen.requests_ok is None else seen.requests_ok,
            last.failed if seen.requests_failed is None else seen.requests_failed,
            last.timed_out if seen.requests_timed_out is None else seen.requests_timed_out,
        )
        if known is None:
            self.accounts[replica] = Account(told, told)
            return ()
        fell = any(getattr(told, name) < getattr(last, name) for name in Counts.__struct_fields__)
        if fell or look.is_new_life:
            known.start = Counts() if told.total < AT_LEAST else told
        known.last = told
        batch = told.since(known.start)
        if batch.total < AT_LEAST:
            return ()
        known.start = told
        return self._judge(look, known, batch)

    @staticmethod
    def _judge(look: Look, known: Account, batch: Counts) -> Sequence[Verdict]:
        ratio = (batch.failed + batch.timed_out) / batch.total
        if ratio >= BAD_RATIO and not known.said:
            known.said = True
            return (_unhealthy(look, batch, ratio),)
        if ratio <= GOOD_RATIO and known.said:
            known.said = False
            return (Clear(code=CODE, at=look.seen.at, name=look.tenant.replica),)
        return ()


def _unhealthy(look: Look, batch: Counts, ratio: float) -> Finding:
    seen, stamp = look.seen, rfc3339(look.seen.at)
    readings = {"ok": batch.ok, "failed": batch.failed, "timed_out": batch.timed_out, "ratio": round(ratio, 4)}
    return Finding(
        code=CODE,
        at=seen.at,
        source=Source.ENGINE,
        first=(CODE, look.tenant.replica, stamp),
        fields=look.tenant.fields() | readings,
        text=f"{batch.failed + batch.timed_out} of its last {batch.total} answers failed",
        evidence=(Evidence(source="engine", at=stamp, readings=readings),),
    )
