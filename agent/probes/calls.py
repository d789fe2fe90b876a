"""Driver calls that do not come back: probe_slow, then probe_hung; and driver_hang where all of them wait.

A call through a sick firmware returns after 6 s or 45 s, so a slow one is no verdict; one that was not back after two
minutes never is. One call a GPU is outstanding at most, and a hung one is never made again. If every GPU waits at once
the driver's own lock is held: then nothing is known of any GPU but the one whose call began first. A node that stood
still as a whole (a suspended machine) has not hung: that time is taken off.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Evidence, Scope, Severity, Source, rfc3339
from vocab.observations import AnyObservation, ClockStep, DriverCall, NodeSeen, Restart

HUNG, SLOW, HANG = "probe_hung", "probe_slow", "driver_hang"
SLOW_S = 10.0  # a pass over a GPU takes milliseconds; the shortest time-out inside the driver is 6 s
HUNG_S = 120.0  # the kernel's own limit for a hung task, and past every time-out of the firmware (45 s)
CALM_S = 300.0  # without another slow call; field report: one call in five was slow


class Waiting(msgspec.Struct):
    """A call under way: whose it is, since when, and what was said of it."""

    gpu: str | None
    call: str
    since: float
    pid: int | None = None
    stacks: str | None = None
    slow: bool = False
    hung: bool = False

    def due(self) -> float | None:
        """When there is something to say of it, if it does not come back."""
        return None if self.hung else self.since + (HUNG_S if self.slow else SLOW_S)


class CallsProbe(msgspec.Struct):
    """The calls under way by ``gpu|call``, and which GPUs are said to be slow (until when, None while one waits)."""

    waiting: dict[str, Waiting] = {}
    calm_at: dict[str, float] = {}
    held: bool = False  # the driver's own lock is: all GPUs wait
    boot: str | None = None
    turn: int = 0

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a call, a pause of the node, or a restart of whoever made the calls."""
        match observation:
            case DriverCall(state="started"):
                key = _key(observation)
                call = self.waiting.setdefault(key, Waiting(observation.gpu, observation.call, now, observation.pid))
                call.stacks = observation.stacks or call.stacks
            case DriverCall():
                return list(self._back(observation, now))
            case ClockStep(pause_s=float(pause_s)):
                for call in self.waiting.values():
                    call.since += pause_s
            case Restart(of="agent"):
                self.waiting = {key: call for key, call in self.waiting.items() if call.hung}  # the others died with it
            case NodeSeen(boot_id=boot_id):
                over = list(self._over(observation.at)) if self.boot not in {None, boot_id} else []
                self.boot = boot_id
                return over
        return ()

    def _over(self, at: float) -> Iterator[Verdict]:
        """Another boot: no call of before is under way."""
        yield from (Clear(code=HUNG, at=at, gpu=call.gpu) for call in self.waiting.values() if call.hung)
        yield from (Clear(code=SLOW, at=at, gpu=whose or None) for whose in self.calm_at)
        self.waiting, self.calm_at, self.held = {}, {}, False

    def _back(self, seen: DriverCall, now: float) -> Iterator[Verdict]:
        call = self.waiting.pop(_key(seen), None)
        if call is None:
            return
        if now - call.since >= SLOW_S and not call.slow:
            yield from self._slow(call, seen.at, now)
        if call.slow or now - call.since >= SLOW_S:
            self.calm_at[_whose(call)] = now + CALM_S
        if call.hung and not any(other.hung for other in self.waiting.values() if other.gpu == call.gpu):
            yield Clear(code=HUNG, at=seen.at, gpu=call.gpu)
        self.held = self.held and any(other.hung for other in self.waiting.values())

    def _slow(self, call: Waiting, at: float, now: float) -> Iterator[Verdict]:
        call.slow = True
        if _whose(call) in self.calm_at:
            return  # said already
        self.calm_at[_whose(call)] = float("inf")
        yield self._say(SLOW, call, at, now, f"{call.call} has not come back for {now - call.since:.0f} s")

    def _say(
        self, code: str, call: Waiting, at: float, now: float, text: str, *, severity: Severity | None = None
    ) -> Verdict:
        self.turn += 1
        fields = {"call": call.call, "for_s": round(now - call.since, 3)}
        if code == HANG:
            fields["suspect"] = call.gpu or ""
        found = node_finding(
            code,
            at,
            text,
            source=Source.NVML,
            gpu=None if code == HANG else call.gpu,
            scope=Scope.NODE if call.gpu is None else None,
            pid=call.pid,
            severity=severity,
            first=(call.gpu, call.call, self.turn),
            fields=fields,
        )
        if call.stacks is None:
            return found
        where = Evidence(source=Source.HOST.value, at=rfc3339(at), line=call.stacks)
        return msgspec.structs.replace(found, evidence=(*found.evidence, where))

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Say which calls have taken too long."""
        verdicts: list[Verdict] = []
        for call in sorted(self.waiting.values(), key=lambda call: call.since):
            due = call.due()
            if due is None or now < due:
                continue
            verdicts += self._slow(call, now, now) if not call.slow else self._hung(call, scene, now)
        for whose, at in list(self.calm_at.items()):
            if now >= at:
                del self.calm_at[whose]
                verdicts.append(Clear(code=SLOW, at=now, gpu=whose or None))
        return verdicts

    def _hung(self, call: Waiting, scene: Scene, now: float) -> Iterator[Verdict]:
        call.hung = True
        stuck = {other.gpu for other in self.waiting.values() if other.slow}
        all_wait = len(scene.gpus) > 1 and stuck >= set(scene.gpus)
        if self.held and all_wait:
            return  # one call holds the lock; the others wait for it and are not at fault
        text = f"{call.call} has not come back for {now - call.since:.0f} s"
        yield self._say(HUNG, call, now, now, text)
        if all_wait:
            self.held = True
            yield self._say(HANG, call, now, now, f"every GPU waits in the driver; {text}", severity=Severity.CRITICAL)

    def next_deadline(self) -> float | None:
        """When the first call has taken too long, or the first slow GPU has been quiet for long enough."""
        times = [due for call in self.waiting.values() if (due := call.due()) is not None]
        return min([*times, *(at for at in self.calm_at.values() if at != float("inf"))], default=None)

    def forget(self, gpu: str) -> None:
        """A reset ends nothing here: a call that hangs in the kernel hangs on."""

    def doubt(self, gpu: str) -> None:
        """A person called it healthy: if a call of it hangs still, that is said again."""
        for call in self.waiting.values():
            call.hung = call.hung and call.gpu != gpu


def _key(seen: DriverCall) -> str:
    return f"{seen.gpu or ''}|{seen.call}"


def _whose(call: Waiting) -> str:
    return call.gpu or ""
