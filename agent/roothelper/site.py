"""The site's own units: stopped, restarted and started where root's configuration names them, and nowhere else.

systemd is told and not waited for: how long a unit may take to stop is in its own file, and its reader asks again.
"""

import logging
from typing import Protocol

from agent.roothelper.limits import Ledger
from agent.roothelper.programs import Programs, run
from agent.roothelper.requests import (
    AnyReply,
    AnyUnitRequest,
    Denied,
    Done,
    Failed,
    ReadUnit,
    RestartUnit,
    StartUnit,
    StopUnit,
    UnitRun,
)
from vocab.clock import Clock
from vocab.units import is_allowed

log = logging.getLogger(__name__)

ASK_S = 15.0  # systemd only takes the wish
PROPERTIES = ("LoadState", "ActiveState", "InvocationID", "UnitFileState", "Result")


class SiteUnits(Protocol):
    """systemd, as far as it is asked about units of others. Raises OSError where it cannot be asked."""

    def read(self, unit: str) -> UnitRun | None:
        """How it stands; None if there is no such unit."""
        ...

    def tell(self, verb: str, unit: str) -> AnyReply:
        """Have it stopped, restarted or started."""
        ...


class SystemdUnits:
    """The system's own service manager, by ``systemctl``."""

    def __init__(self, programs: Programs | None = None) -> None:
        self._programs = programs or Programs()

    def read(self, unit: str) -> UnitRun | None:
        """By ``systemctl show``."""
        ran = run(self._programs.systemctl, ("show", f"--property={','.join(PROPERTIES)}", "--", unit), ASK_S)
        if ran.code != 0:
            raise OSError(f"systemctl show {unit}: {ran.last_words}")
        found = dict(line.split("=", 1) for line in ran.output.splitlines() if "=" in line)
        if found.get("LoadState") not in {"loaded", "masked"}:
            return None
        return UnitRun(
            active=found.get("ActiveState", ""),
            invocation=found.get("InvocationID", ""),
            file_state=found.get("UnitFileState", ""),
            result=found.get("Result", ""),
        )

    def tell(self, verb: str, unit: str) -> AnyReply:
        """By ``systemctl VERB --no-block``."""
        ran = run(self._programs.systemctl, (verb, "--no-block", "--no-ask-password", "--", unit), ASK_S)
        if ran.code == 0:
            return Done()
        why = ran.last_words if ran.code is not None else f"not within {ASK_S:.0f} s"
        return Failed(why=f"systemctl {verb} {unit}: {why}", unseen=ran.code is None)


class SiteDuty:
    """This part of the helper. ``allowed``: whole names of units, or of their templates."""

    def __init__(self, units: SiteUnits, allowed: tuple[str, ...], ledger: Ledger, clock: Clock) -> None:
        self._units = units
        self.allowed = allowed
        self._ledger = ledger
        self._clock = clock

    def perform(self, request: AnyUnitRequest) -> AnyReply:
        """Do what is asked, or say why not. Raises OSError for what breaks."""
        if not is_allowed(request.unit, self.allowed):
            named = ", ".join(self.allowed) or "none is"
            return Denied(why=f"{request.unit} is not named in units of the root helper's configuration ({named})")
        match request:
            case ReadUnit():
                found = self._units.read(request.unit)
                return found if found is not None else Denied(why=f"systemd knows no {request.unit}")
            case StopUnit():
                return self._tell("stop", request.unit)
            case RestartUnit():
                return self._tell("restart", request.unit)
            case StartUnit():
                return self._tell("start", request.unit)

    def _tell(self, verb: str, unit: str) -> AnyReply:
        refusal = self._ledger.charge(f"{verb}_unit", (unit,), self._clock.now())
        if refusal is not None:
            return Denied(why=refusal)
        log.warning("%s_unit", verb, extra={"unit": unit})
        return self._units.tell(verb, unit)
