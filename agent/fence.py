"""The agent's own fence: where seconds count, a GPU is taken out of service before any controller answers.

Pure: events, samples, holds and time in, steps out. The bounds:

- only codes that the catalogue calls certain, error or critical, not injected, at level fence or above, whose rule the
  controller has not put into shadow;
- a GPU that still answers needs a second witness: another fault of it, or a read that fails. A code that
  says the GPU is gone stands alone, for waiting would cost seconds; two good reads after it end the fence.
  In a backlog it does not stand alone: the GPU may have been repaired since;
- at most two GPUs and half the node at a time, those confirmed as lost not counted: more means doubt;
- it ends after 120 s unless seen again, and is replaced by the controller's own hold. Then replicas stay
  fenced for as long as a hold stands;
- while paused nothing is fenced, but fences go on ending.
"""

from collections.abc import Sequence

import msgspec

from vocab.catalogue.codes import row
from vocab.events import Event, Flag, Severity
from vocab.messages import HoldSpec
from vocab.observations import GpuSample
from vocab.states import Level

EXPIRES_S = 120.0
MOST_GPUS = 2
GOOD_READS = 2  # the first may have begun before the fault
LOSING = frozenset({"xid:79", "gpu_lost"})  # codes that say by themselves that the GPU no longer answers
AGENT = "agent:"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to do or say. ``op``: placed, expired, replaced, refused, or released (after a hold that replaced it)."""

    gpu: str
    op: str
    why: str
    event: str | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the agent now."""

    level: Level
    paused: bool
    gpus: int
    shadowed: frozenset[str] = frozenset()  # codes whose rules are in shadow

    @property
    def most(self) -> int:
        """How many GPUs that still answer may be fenced; of a small node at least one."""
        return max(1, min(MOST_GPUS, self.gpus // 2))


class Fence(msgspec.Struct):
    """A fence that stands. ``hold``: the controller's hold that replaced it."""

    event: str
    code: str
    until: float
    witnessed: bool
    good: int = 0
    hold: str | None = None


class Suspect(msgspec.Struct):
    """A GPU with a certain fault that waits for a second witness, or for room in the bounds."""

    event: str
    code: str
    until: float
    told: bool = False


class Fences(msgspec.Struct):
    """All fences of the node, what may become one, and which GPUs do not answer."""

    standing: dict[str, Fence] = {}
    suspects: dict[str, Suspect] = {}
    silent: dict[str, str] = {}  # GPU -> the error of its last read

    @property
    def gpus(self) -> frozenset[str]:
        """The GPUs that are fenced."""
        return frozenset(self.standing)

    def judged(self, event: Event, bounds: Bounds, now: float) -> list[Step]:
        """An event of the judge: a reason for a fence, a second witness, or neither."""
        gpu = event.gpu
        if gpu is None or event.injected or event.drill or event.severity.rank < Severity.ERROR.rank:
            return []
        if gpu in self.standing:
            self._again(self.standing[gpu], event, now)
            return []
        waiting = self._suspect(gpu, now)
        if waiting is not None and waiting.code != event.code:
            return self._place(gpu, waiting.event, waiting.code, bounds, now, why=f"{waiting.code}, and {event.code}")
        if not row(event.code).certain or event.code in bounds.shadowed:
            return []
        self.suspects[gpu] = Suspect(event.id, event.code, now + EXPIRES_S, told=waiting is not None and waiting.told)
        if gpu in self.silent or (event.code in LOSING and Flag.BACKLOG not in event.flags):
            return self._place(gpu, event.id, event.code, bounds, now, why=f"{event.code}: the GPU no longer answers")
        return []

    def _again(self, fence: Fence, event: Event, now: float) -> None:
        if event.code == fence.code or row(event.code).certain:
            fence.until = now + EXPIRES_S
        fence.witnessed = fence.witnessed or event.code != fence.code

    def sampled(self, gpu: str, sample: GpuSample, bounds: Bounds, now: float) -> list[Step]:
        """A read of a GPU: a failed one is a witness, good ones may end a fence that has none."""
        if sample.error is not None:
            return self._silent(gpu, sample.error, bounds, now)
        if sample.readings is None:
            return []
        self.silent.pop(gpu, None)
        fence = self.standing.get(gpu)
        if fence is None or fence.witnessed or fence.hold is not None:
            return []
        fence.good += 1
        if fence.good < GOOD_READS:
            return []
        return [self._end(gpu, "expired", "the GPU answers, and nothing else speaks against it")]

    def is_calm(self, gpu: str, sample: GpuSample) -> bool:
        """Whether a read changes nothing here: a good one of a GPU that is neither fenced nor silent."""
        return sample.error is None and gpu not in self.standing and gpu not in self.silent

    def _silent(self, gpu: str, error: str, bounds: Bounds, now: float) -> list[Step]:
        self.silent[gpu] = error
        fence, waiting = self.standing.get(gpu), self._suspect(gpu, now)
        if fence is not None:
            fence.witnessed, fence.good = True, 0
        if waiting is None:
            return []
        return self._place(
            gpu, waiting.event, waiting.code, bounds, now, why=f"{waiting.code}, and reads fail: {error}"
        )

    def _suspect(self, gpu: str, now: float) -> Suspect | None:
        """The suspicion against a GPU, unless it is too old to be joined with anything."""
        waiting = self.suspects.get(gpu)
        if waiting is not None and now >= waiting.until:
            del self.suspects[gpu]
            return None
        return waiting

    def _place(self, gpu: str, event: str, code: str, bounds: Bounds, now: float, *, why: str) -> list[Step]:
        if not bounds.level.allows(Level.FENCE) or code in bounds.shadowed:
            return []
        refusal = self._refusal(gpu, bounds)
        if refusal is not None:
            waiting = self.suspects.get(gpu)
            if waiting is None or waiting.told:
                return []
            waiting.told = True
            return [Step(gpu=gpu, op="refused", event=event, why=refusal)]
        self.suspects.pop(gpu, None)
        witnessed = gpu in self.silent or code not in LOSING
        self.standing[gpu] = Fence(event, code, now + EXPIRES_S, witnessed)
        return [Step(gpu=gpu, op="placed", event=event, why=why)]

    def _refusal(self, gpu: str, bounds: Bounds) -> str | None:
        if bounds.paused:
            return "automation is paused"
        answering = [other for other in self.standing if other not in self.silent]
        if gpu not in self.silent and len(answering) >= bounds.most:
            return f"{len(answering)} GPUs that still answer are fenced already: too much looks sick at once"
        return None

    def held(self, holds: Sequence[HoldSpec]) -> list[Step]:
        """The holds that the controller wants: they replace fences, and their end ends what they replaced."""
        steps = []
        for gpu, fence in list(self.standing.items()):
            ours = [hold for hold in holds if hold.gpu in {gpu, None} and not hold.owner.startswith(AGENT)]
            if fence.hold is None and ours:
                fence.hold = ours[0].id
                why = f"held by {ours[0].owner}: {ours[0].reason}"
                steps.append(Step(gpu=gpu, op="replaced", event=fence.event, why=why))
            elif fence.hold is not None and not ours:
                steps.append(self._end(gpu, "released", "the hold that replaced the fence was lifted"))
        return steps

    def tick(self, now: float) -> list[Step]:
        """End what has expired. A GPU that still does not answer is seen again by that."""
        steps = []
        for gpu, fence in list(self.standing.items()):
            if fence.hold is not None or now < fence.until:
                continue
            if gpu in self.silent:
                fence.until = now + EXPIRES_S
            else:
                steps.append(self._end(gpu, "expired", f"{fence.code} was not seen again for {EXPIRES_S:.0f} s"))
        return steps

    def next_deadline(self) -> float | None:
        """When the first fence may expire."""
        return min((fence.until for fence in self.standing.values() if fence.hold is None), default=None)

    def _end(self, gpu: str, op: str, why: str) -> Step:
        fence = self.standing.pop(gpu)
        return Step(gpu=gpu, op=op, event=fence.event, why=why)
