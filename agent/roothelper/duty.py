"""What the root helper does for a request: checked here once more, for its caller may be wrong or taken over.

It refuses what the PAUSE file forbids, what its limits forbid, a service that is not on its list, and every reset
or reboot while a process has the GPUs open that belongs to none of its services.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from agent.replicas.record import UNIT_PREFIX
from agent.roothelper.limits import Ledger
from agent.roothelper.machine import Machine
from agent.roothelper.replicas import ReplicaDuty
from agent.roothelper.requests import (
    FABRIC_MANAGER,
    OWN_UNIT,
    Able,
    AnyReply,
    AnyRequest,
    Ask,
    ClearReplica,
    Collect,
    Denied,
    EndReplica,
    Failed,
    Holder,
    ReadReplica,
    ReadReport,
    ReadUnit,
    Reboot,
    ResetGpus,
    RestartUnit,
    StartReplica,
    StartService,
    StartUnit,
    StopService,
    StopUnit,
    Survey,
    Surveyed,
)
from agent.roothelper.site import SiteDuty, SystemdUnits
from vocab.clock import Clock
from vocab.errors import InputError

log = logging.getLogger(__name__)

HARMFUL = (StopService, ResetGpus, Reboot, StopUnit, RestartUnit)
DEEDS = (*HARMFUL, StartService, StartUnit)  # one at a time: what is proven before a reset must still hold in it
# The vendor's own daemons, by the names of its packages: what they do is not somebody's work. Whatever else is called
# alike is somebody's.
VENDOR = frozenset(
    {
        "nvidia-persistenced.service",
        FABRIC_MANAGER,
        "nvidia-dcgm.service",
        "nvidia-dcgm-exporter.service",
        "nvidia-imex.service",
        "nvidia-powerd.service",
        "nvidia-gridd.service",
        "nvidia-topologyd.service",
        "nvidia-vgpud.service",
        "nvidia-vgpu-mgr.service",
        "nvidia-mig-manager.service",
        "nvidia-cdi-refresh.service",
        "nvidia-suspend.service",
        "nvidia-resume.service",
        "nvidia-hibernate.service",
    }
)


class Duty:
    """One node's helper, without its socket. ``services`` may be stopped, in this order."""

    def __init__(
        self,
        machine: Machine,
        services: tuple[str, ...],
        pause_file: Path,
        ledger: Ledger,
        clock: Clock,
        replicas: ReplicaDuty | None = None,
        site: SiteDuty | None = None,
    ) -> None:
        self._machine = machine
        self._services = services
        self._pause_file = pause_file
        self._ledger = ledger
        self._clock = clock
        self._replicas = replicas
        self._site = site or SiteDuty(SystemdUnits(), (), ledger, clock)  # none of the site's units
        self._turn = threading.Lock()

    def perform(self, request: AnyRequest) -> AnyReply:
        """Do what is asked, or say why not. Raises nothing that a caller could bring about."""
        try:
            with self._turn if isinstance(request, DEEDS) else nullcontext():
                if isinstance(request, HARMFUL) and self._pause_file.exists():
                    return Denied(why=f"automation is paused by {self._pause_file}")
                return self._perform(request)
        except InputError as error:
            return Denied(why=str(error))
        except OSError as error:
            log.error("the helper could not do its part", extra={"error": str(error)})
            return Failed(why=f"the helper could not do its part: {error}")

    def _perform(self, request: AnyRequest) -> AnyReply:
        match request:
            case Ask():
                more = ("replicas",) if self._replicas is not None else ()
                return Able(verbs=(*self._machine.verbs, *more), services=self._services, units=self._site.allowed)
            case Survey(gpus=gpus):
                return self._survey(gpus)
            case StopService(unit=unit):
                return self._stop(unit)
            case StartService(unit=unit):
                return self._serve("start_service", unit, self._machine.start)
            case Collect(order=order, limit_s=limit_s):
                return self._counted("collect", ("",), lambda: self._machine.collect(order, limit_s))
            case ReadReport(order=order, offset=offset):
                return self._machine.report(order, offset)
            case ResetGpus(gpus=gpus):
                return self._reset(gpus)
            case Reboot():
                return self._reboot()
            case StartReplica() | EndReplica() | ReadReplica() | ClearReplica():
                none = Denied(why="the root helper's configuration has no [replicas]: see its example", impossible=True)
                return self._replicas.perform(request) if self._replicas is not None else none
            case ReadUnit() | StopUnit() | RestartUnit() | StartUnit():
                return self._site.perform(request)

    def _survey(self, gpus: tuple[str, ...]) -> Surveyed:
        return Surveyed(
            holders=self._machine.holders(gpus),
            running=tuple(unit for unit in self._services if self._machine.is_active(unit)),
            users=self._machine.users(),
            inhibitors=self._machine.inhibitors(),
        )

    def _stop(self, unit: str) -> AnyReply:
        """The fabric of all GPUs is not taken away from under anybody's work, ours included."""
        if unit == FABRIC_MANAGER:
            holders = [each for each in self._machine.holders(self._machine.gpus()) if each.unit not in self._services]
            if holders:
                return Denied(why=f"GPUs of its fabric are in use by {named(tuple(holders))}")
        return self._serve("stop_service", unit, self._machine.stop)

    def _serve(self, verb: str, unit: str, act: Callable[[str], AnyReply]) -> AnyReply:
        if unit not in self._services:
            return Denied(why=f"{unit} is not a service that may be stopped here ({', '.join(self._services)})")
        return self._counted(verb, (unit,), lambda: act(unit))

    def _reset(self, gpus: tuple[str, ...]) -> AnyReply:
        gpus = tuple(dict.fromkeys(gpus))
        holders = in_the_way(self._machine.holders(gpus))
        if holders:
            return Denied(why=f"in use by {named(holders)}")
        return self._counted("reset", gpus, lambda: self._machine.reset(gpus))

    def _reboot(self) -> AnyReply:
        foreign = strangers(self._machine.holders(self._machine.gpus()), self._services)
        if foreign:
            return Denied(why=f"in use by {named(foreign)}")
        users, inhibitors = self._machine.users(), self._machine.inhibitors()
        if users is None or inhibitors is None:
            return Denied(why="nobody can say who is logged in here or what must not be interrupted")
        if users or inhibitors:
            return Denied(why=f"in the way: {'; '.join((*users, *inhibitors))}")
        return self._counted("reboot", ("",), self._machine.reboot)

    def _counted(self, verb: str, subjects: tuple[str, ...], act: Callable[[], AnyReply]) -> AnyReply:
        refusal = self._ledger.charge(verb, subjects, self._clock.now())
        if refusal is not None:
            return Denied(why=refusal)
        log.warning("%s", verb, extra={"subjects": " ".join(subjects)})
        return act()


def in_the_way(holders: tuple[Holder, ...]) -> tuple[Holder, ...]:
    """Who must be gone for a reset. Fabric manager stays for the other GPUs: the driver says if it cannot."""
    return tuple(each for each in holders if each.unit != FABRIC_MANAGER)


def strangers(holders: tuple[Holder, ...], services: tuple[str, ...]) -> tuple[Holder, ...]:
    """Those that are neither a service that may be stopped, nor the vendor's own daemon, nor ours.

    Only root makes units of the system, and those of a replica's name are made here alone.
    """
    known = {*services, *VENDOR, OWN_UNIT}
    return tuple(each for each in holders if each.unit not in known and not (each.unit or "").startswith(UNIT_PREFIX))


def named(holders: tuple[Holder, ...]) -> str:
    """Holders in words."""
    return ", ".join(f"pid {holder.pid} ({holder.name})" for holder in holders)
