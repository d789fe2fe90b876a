"""Active checks that found a problem: each is its own witness. What one reports, only its own pass takes back; what
two report stands until both have passed.

A check that names a code of the catalogue reports that; any other is ``check_failed``, told apart by its name. How bad
it is follows from the code, never from how loud the check is. Xids that checks have read in the log, and canaries,
are judged by their own probes.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.pushed import named_xid
from agent.probes.scene import Scene
from vocab.catalogue.named import NAMED
from vocab.events import Evidence, Severity, Source, rfc3339
from vocab.observations import AnyObservation, Check

FAILED = "check_failed"
ELSEWHERE = frozenset({"canary"})  # CanaryProbe


class ChecksProbe(msgspec.Struct):
    """Remembers what each check has reported of each GPU: ``check/gpu`` -> the codes."""

    claims: dict[str, list[str]] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take the outcome of a check in; one that does not know says nothing."""
        if not isinstance(observation, Check) or observation.check in ELSEWHERE or observation.replica is not None:
            return ()
        if observation.result == "problem" and named_xid(observation) is None:
            return (self._problem(observation),)
        return self._passed(observation) if observation.result == "pass" else ()

    def _problem(self, check: Check) -> Finding:
        code = check.code if check.code in NAMED else FAILED
        claimed = self.claims.setdefault(_key(check), [])
        if code not in claimed:
            claimed.append(code)
        stamp, text = rfc3339(check.at), check.text or f"the check {check.check} found a problem"
        return Finding(
            code=code,
            at=check.at,
            gpu=check.gpu,
            device=_device(check, code),
            severity=Severity.ERROR if code == FAILED and check.fatal else None,
            source=Source.CHECK,
            first=(check.check, stamp),
            fields={"check": check.check, "check_code": check.code, "check_fatal": check.fatal},
            injected=check.drill,
            drill=check.drill,
            text=text,
            evidence=(Evidence(source="check", at=stamp, line=text),),
        )

    def _passed(self, check: Check) -> Sequence[Verdict]:
        """What it takes back: of its GPU, or of all where it names none."""
        key = _key(check)
        keys = [key] if check.gpu else [known for known in self.claims if known.startswith(key)]
        ended = [(known.removeprefix(f"{check.check}/"), self.claims.pop(known, [])) for known in keys]
        return tuple(
            Clear(code=code, at=check.at, gpu=gpu or None, device=_device(check, code), proven=True)
            for gpu, codes in ended
            for code in codes
            if code == FAILED or not self._is_claimed(gpu, code)
        )

    def _is_claimed(self, gpu: str, code: str) -> bool:
        """Whether another check still reports the same of this GPU."""
        return any(known.endswith(f"/{gpu}") and code in codes for known, codes in self.claims.items())

    def forget(self, gpu: str) -> None:
        """A reset proves nothing to a check: it is run again."""


def _key(check: Check) -> str:
    return f"{check.check}/{check.gpu or ''}"


def _device(check: Check, code: str) -> str | None:
    """What tells two checks apart that have no code of their own."""
    return f"check:{check.check}" if code == FAILED else None
