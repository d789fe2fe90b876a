"""Died: the engine cannot work any more. Its process ended, or one of its processes did, or its door stays shut.

Each death counts once, whoever tells it: the parent (exit), the process table, three refusals in a row, a sticky
CUDA error. What an endpoint answers never speaks against these. A death is over when the replica serves again.
The verdict says by what: its GPU, itself, the kernel for memory, somebody outside; the judge joins it with the
faults of its GPUs.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.autopsy import CODE, Life, died
from agent.probes.probe import Clear, Verdict
from agent.probes.tenants import DEAD_STATES, LEAVING, REAPED, Look, Tenant, Tenants, is_asked
from vocab.catalogue.cuda import error_in, known_error
from vocab.catalogue.exits import ending
from vocab.observations import Exit, LogLine, ProcessSeen, ReplicaSeen

IN_A_ROW = 3  # failed looks at its door: one is a hiccup, two a busy moment
DEAD_ANSWERS = frozenset({500, 503})  # newer engines answer these once their core is gone
SHUT = "refused"
OUTSIDE = frozenset({"stopped_from_outside"})  # for a replica that is not ours this is what its owner does


class DeathProbe(msgspec.Struct):
    """Follows every replica to its end."""

    lives: dict[str, Life] = {}

    def looked(self, look: Look, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """Take one look at one replica."""
        seen, tenant = look.seen, look.tenant
        life = self.lives.setdefault(tenant.replica, Life())
        if look.is_new_life:
            life.down, life.shut, life.error = False, 0, None
        if seen.exit is not None or seen.phase == "stopped":
            return self._ended(look, life, tenants, now)
        verdicts = [*self._serves_again(look, life)]
        if not life.down:
            verdicts += self._wounded(look, life, tenants, now)
        return verdicts

    # -- its process ended ------------------------------------------------------------------------------

    def _ended(self, look: Look, life: Life, tenants: Tenants, now: float) -> Sequence[Verdict]:
        seen, tenant, before = look.seen, look.tenant, look.before
        how = seen.exit or Exit()
        first = tenant.ended_at is None
        tenant.ended_at = now if first else tenant.ended_at
        asked = before.asked or before.phase in LEAVING or is_asked(how) or (how.code == 0 and how.signal is None)
        outside = tenant.observed and (seen.exit is None or ending(how.code, how.signal).verdict in OUTSIDE)
        tenant.asked = tenant.asked or asked or outside
        tenant.is_reaped = how.reason in REAPED or len(tenant.pids) <= 1
        if life.down or asked or outside:
            return ()
        life.down = life.open = life.looked = True
        return (died(look, life, how, now, pids=tenants.pids_of(tenant)),)

    # -- it lives, but cannot work ----------------------------------------------------------------------

    def _wounded(self, look: Look, life: Life, tenants: Tenants, now: float) -> Sequence[Verdict]:
        seen, tenant = look.seen, look.tenant
        self._knock(look, life)
        if seen.phase in LEAVING or tenant.asked:
            return ()
        text = self._shut(look, life) or self._broken(look, life) or _lost_process(look)
        if text is None:
            return ()
        life.down = life.open = life.looked = True
        pids, living = tenants.pids_of(tenant), _living(tenant, tenants)
        return (died(look, life, None, now, text=text, pids=pids, living=living),)

    def _knock(self, look: Look, life: Life) -> None:
        seen = look.seen
        if seen.health is None:
            return
        is_shut = seen.health == SHUT or seen.health in DEAD_ANSWERS
        starts = not look.tenant.was_ready or seen.phase == "starting"
        life.shut = life.shut + 1 if is_shut and not starts and not look.moved else 0
        life.shut_as = str(seen.health)

    @staticmethod
    def _shut(look: Look, life: Life) -> str | None:
        if life.shut < IN_A_ROW:
            return None
        return f"{life.shut} looks at its door in a row: {life.shut_as}, and no step"

    @staticmethod
    def _broken(look: Look, life: Life) -> str | None:
        """A sticky error that it reports, without a step since: an error that it survives is not one."""
        error = known_error(look.seen.error)
        if error is None or not error.is_sticky or look.moved or error.name == "Unknown":
            life.error = look.seen.error if look.seen.error is not None else life.error
            life.error_step = look.tenant.step
            return None
        again = life.error == look.seen.error and life.error_step == look.tenant.step
        life.error, life.error_step = look.seen.error, look.tenant.step
        return f"CUDA error {look.seen.error} ({error.name}), and no step since" if again else None

    def _serves_again(self, look: Look, life: Life) -> Sequence[Verdict]:
        seen = look.seen
        if not life.open or seen.phase in LEAVING:
            return ()
        back = not life.down and (seen.ready or seen.phase == "ready")  # in a new life
        back = back or (life.down and life.looked and bool(look.moved))  # or in the one that was given up
        life.looked = life.looked or life.down
        opened = life.down and life.shut >= IN_A_ROW and seen.health == 200
        if not (back or opened):
            return ()
        life.open = life.down = False
        life.shut = 0
        return (Clear(code=CODE, at=seen.at, name=seen.replica),)

    # -- the process table and the log ------------------------------------------------------------------

    def met(self, seen: ProcessSeen, tenant: Tenant | None, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """A process of a replica has gone: the replica is dead at once, whatever its door answers."""
        if tenant is None or seen.state not in DEAD_STATES or tenant.ended_at is not None:
            return ()
        life = self.lives.setdefault(tenant.replica, Life())
        leads = bool(tenant.pids) and seen.pid == tenant.pids[0]
        if leads:
            tenant.ended_at = now
        mine = seen.pid in tenant.pids or not tenant.pids
        stopped_by_owner = tenant.observed and leads  # or crashed: without its exit nobody can tell
        if life.down or tenant.asked or tenant.phase in LEAVING or stopped_by_owner or not mine:
            return ()
        life.down = life.open = True
        life.looked = False
        name = f" ({seen.name})" if seen.name else ""
        text = f"its process {seen.pid}{name} is gone"
        last = ReplicaSeen(at=seen.at, node=seen.node, replica=tenant.replica)
        look = Look(tenant, last, None, None, is_new_life=False, before=tenant)
        pids, living = tenants.pids_of(tenant), _living(tenant, tenants)
        return (died(look, life, None, now, text=text, pid=seen.pid, pids=pids, living=living),)

    def read(self, line: LogLine, now: float) -> None:
        """A line of its log: it may name the error that ends it."""
        error = error_in(line.line)
        if error is not None:
            self.lives.setdefault(line.replica, Life()).last_error = (now, error.code)

    def is_down(self, replica: str) -> bool:
        """Whether this life of it is over."""
        return replica in self.lives and self.lives[replica].down


def _lost_process(look: Look) -> str | None:
    """A process that is named no longer while nothing moves: helpers come and go, but then the engine works."""
    gone = set(look.before.pids) - set(look.seen.pids)
    if not look.seen.pids or look.is_new_life or not gone or look.moved is not False or not look.has_work:
        return None
    return f"its processes {', '.join(map(str, sorted(gone)))} are gone, and no step since"


def _living(tenant: Tenant, tenants: Tenants) -> list[int]:
    return [pid for pid in tenants.pids_of(tenant) if pid in tenants.processes and tenants.processes[pid].is_alive]
