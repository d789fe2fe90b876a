"""A collective timed out: the members of a replica wait for one another, and the library has noticed before us.

Its watchdog is meant to end the program and often does not. One finding for all ranks that say so; the rank that
says nothing of this collective, or of an earlier one, never arrived: its GPU is the suspect. No fault of hardware
by itself. Whether the processes end by themselves is seen for 30 s.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.tenants import LEAVING, Look, Tenant, Tenants
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import LogLine, Member

CODE = "collective_timeout"
GRACE_S = 30.0  # in which a program that ends by its watchdog has ended: dumps of the ranks take most of it
MOST_SILENT = 0.25  # of the ranks: more than that, and their lines are only missing
_SAYS = "ollective operation timeout"  # cheap to look for; "Watchdog caught collective operation timeout"
_FORM = re.compile(  # the process group is named from torch 2.3 on
    r"(?:\[rank(?P<whole>\d{1,7})\]:.{0,99})?\[(?:PG [^\]]{1,120} )?Rank (?P<rank>\d{1,7})\]"
    r".{0,40}?ollective operation timeout: Work\w{0,24}\("
    r"SeqNum=(?P<seq>\d{1,18}), OpType=(?P<op>\w{1,32})"
)
_TIMEOUT = re.compile(r"Timeout\(ms\)=(\d{1,15})")
_RAN = re.compile(r"ran for (\d{1,15}) milliseconds")


class Timeout(msgspec.Struct, frozen=True):
    """What one line says. Times in milliseconds."""

    rank: int
    seq: int
    op: str
    timeout_ms: int | None = None
    ran_ms: int | None = None


def parse(line: str) -> Timeout | None:
    """The timeout that a line of a log tells of, if it does."""
    if _SAYS not in line:
        return None
    found = _FORM.search(line[:2000])
    if found is None:
        return None
    limit, ran = _TIMEOUT.search(line[:2000]), _RAN.search(line[:2000])
    return Timeout(
        rank=int(found["whole"] or found["rank"]),  # a group counts its own ranks; the prefix, those of the replica
        seq=int(found["seq"]),
        op=found["op"],
        timeout_ms=int(limit[1]) if limit else None,
        ran_ms=int(ran[1]) if ran else None,
    )


class Wait(msgspec.Struct):
    """One collective that timed out at one replica: since when, and which rank said which number."""

    since: float
    at: float
    seqs: dict[int, int]
    first: Timeout
    due: float | None
    node: str | None = None  # whose logs are read


class CollectiveProbe(msgspec.Struct):
    """Reads the logs of replicas for collectives that timed out."""

    waits: dict[str, Wait] = {}

    def read(self, line: LogLine, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """Take one line of a replica's log."""
        told = parse(line.line)
        if told is None:
            return ()
        tenant = tenants.named.get(line.replica) or Tenant(line.replica)
        wait = self.waits.get(line.replica)
        if wait is None:
            wait = self.waits[line.replica] = Wait(now, line.at, {}, told, now + GRACE_S, line.node)
        if wait.seqs.get(told.rank) == told.seq:
            return ()  # each rank prints it more than once
        wait.seqs[told.rank] = told.seq
        return (_finding(tenant, wait, line.at, f"{line.line[:500]}"),)

    def looked(self, look: Look, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """A replica that moves again, or lives anew, has no collective that waits."""
        wait = self.waits.get(look.tenant.replica)
        if wait is None:
            return ()
        if look.seen.exit is not None or look.tenant.ended_at is not None:
            wait.due = None  # it ended by itself, as it should
            return ()
        if not look.is_new_life and not look.moved:
            return ()
        del self.waits[look.tenant.replica]
        return (Clear(code=CODE, at=look.seen.at, name=look.tenant.replica),)

    def tick(self, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """The grace is over: name who never arrived."""
        found = []
        for replica, wait in self.waits.items():
            if wait.due is None or now < wait.due:
                continue
            wait.due = None
            tenant = tenants.named.get(replica) or Tenant(replica)
            if tenant.ended_at is None and tenant.phase not in LEAVING:
                heard = [member for member in tenant.members if wait.node in {None, member.node}]
                blamed = suspects(heard, wait.seqs)
                at = wait.at + GRACE_S
                found.append(_finding(tenant, wait, at, "its processes live on", blamed=blamed, outlived=True))
        return found

    def next_deadline(self) -> float | None:
        """When the first grace is over."""
        return min((wait.due for wait in self.waits.values() if wait.due is not None), default=None)

    def stands(self, replica: str) -> bool:
        """Whether its members wait for one another."""
        return replica in self.waits

    def shift(self, pause_s: float) -> None:
        """The node stood still as a whole."""
        for wait in self.waits.values():
            wait.due = None if wait.due is None else wait.due + pause_s


def suspects(members: Sequence[Member], seqs: dict[int, int]) -> list[tuple[str, str]]:
    """(GPU, confidence) of the ranks, of those whose logs are read, that did not reach where the others wait."""
    ranks = {member.rank: member.gpu for member in members}
    if len(ranks) < 3 or not seqs:
        return []
    ((usual, _),) = Counter(seqs.values()).most_common(1)
    absent = [gpu for rank, gpu in ranks.items() if seqs.get(rank, -1) < usual]
    if len(absent) == 1:
        return [(absent[0], "medium")]
    return [(gpu, "low") for gpu in absent] if len(absent) <= MOST_SILENT * len(ranks) else []


def _finding(
    tenant: Tenant,
    wait: Wait,
    at: float,
    line: str,
    *,
    blamed: Sequence[tuple[str, str]] = (),
    outlived: bool = False,
) -> Finding:
    stamp, first = rfc3339(at), wait.first
    fields: dict[str, Any] = tenant.fields() | {
        "rank": first.rank,
        "seq": first.seq,
        "op": first.op,
        "timeout_ms": first.timeout_ms,
        "ran_ms": first.ran_ms,
        "ranks": sorted(wait.seqs),
    }
    if blamed:
        fields["suspects"] = [{"gpu": gpu, "confidence": confidence} for gpu, confidence in blamed]
    if outlived:
        fields["outlived"] = True
    return Finding(
        code=CODE,
        at=at,
        source=Source.ENGINE,
        first=(CODE, tenant.replica, rfc3339(wait.at)),
        fields=fields,
        text=f"{first.op} number {first.seq} of {tenant.replica} timed out after {first.ran_ms or '?'} ms",
        evidence=(Evidence(source="engine", at=stamp, line=line),),
        count=0 if outlived else 1,
        joins=outlived,
    )
