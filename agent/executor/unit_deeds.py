"""What is done to a unit of the site that runs a replica: drained, restarted, started again.

    drain     out of rotation (its door, or the prestop wait), then stop; how long that takes is the unit's own affair
    restart   of one that stands still
    release   start again what a drain has stopped here: nothing that a person stopped, or has had in hand since

Each asks systemd once: the unit's run (its invocation) is in the book before, so whoever goes on after a crash sees by
the run of then whether it was done.
"""

import contextlib
from collections.abc import Awaitable, Callable

from agent.adapters.adapter import Farewell
from agent.adapters.engines import ENGINES
from agent.executor.unit_book import Entry, Step
from agent.executor.unit_work import UnitWork
from agent.roothelper.requests import RestartUnit, StartUnit, StopUnit, UnitRun
from vocab.errors import Refused, Unreachable
from vocab.messages import ReplicaStatus
from vocab.states import ActionKind, ActionState
from vocab.units import KIND

AGAIN_S = 30.0  # between two tries to reach the root helper
STARTS_S = 60.0  # what has not failed by then is loading: that it serves is seen by itself
DOWN, UP = frozenset({"inactive", "failed"}), frozenset({"active", "activating", "reloading"})
OUT_OF_USE = frozenset({"disabled", "masked", "masked-runtime"})
BOOTED = "the node has booted since"


async def drain(work: UnitWork, entry: Entry) -> Entry:
    """It ends as *running*: that the replica has gone is seen by itself, by all.

    Raises Halted or Refused with nothing stopped, Unreachable if nobody can be asked.
    """
    if entry.boot_id != work.boot_id:
        return await work.end(entry, ActionState.RUNNING, BOOTED, down=entry.down or entry.step is Step.ASKING)
    if entry.step is Step.WAITING:
        status = work.status(entry.replica)
        if status is None:
            return await work.end(entry, ActionState.RUNNING, "nothing of it runs here any more")
        entry = await work.put(entry, unit=_unit_of(status), pid=status.pid, down=False)
        if (await work.read(entry.unit)).active not in UP:
            return await _end_with_others(work, entry)
        entry = await _withdraw(work, entry, status)
        run = await work.read(entry.unit)
        work.insist(entry)
        entry = await work.put(entry, step=Step.ASKING, invocation=run.invocation, file_state=run.file_state)
    return await _stop(work, entry)


async def _end_with_others(work: UnitWork, entry: Entry) -> Entry:
    """Somebody else stops it, or it has ended: that is not undone by us."""
    while (await work.read(entry.unit)).active not in DOWN:
        work.insist(entry)
        await work.wait()
    return await work.end(entry, ActionState.RUNNING, f"{entry.unit} was stopped by somebody else")


async def _withdraw(work: UnitWork, entry: Entry, status: ReplicaStatus) -> Entry:
    """Out of rotation: where it has a door, until nothing is open; else for as long as its load balancer needs."""
    order, engine, began = entry.order, ENGINES.get(status.engine), work.clock.monotonic()
    if engine is not None and engine.farewell is Farewell.DOOR and status.url:
        entry = await work.put(entry, closed=True)
        await work.door.close(status.url)
    until = began + order.prestop_s + (order.drain_s if entry.closed else 0.0)
    while work.clock.monotonic() < until:
        now = work.status(entry.replica)
        if now is None or (entry.closed and _is_idle(now) and work.clock.monotonic() >= began + order.prestop_s):
            break
        work.insist(entry)
        await work.wait()
    return entry


def _is_idle(status: ReplicaStatus) -> bool:
    return status.running + status.waiting + status.open_requests == 0


async def _stop(work: UnitWork, entry: Entry) -> Entry:
    """Have it stopped and wait until it is. Past this nothing takes it back: what was asked for goes on."""
    asked_at = float("-inf")
    while True:
        with contextlib.suppress(Unreachable):  # it is asked again
            run = await work.read(entry.unit)
            if run.active in DOWN:
                return await work.end(entry, ActionState.RUNNING, f"systemd has stopped {entry.unit}", down=True)
            if run.active in UP and run.invocation != entry.invocation:
                why = f"{entry.unit} was stopped, and somebody has started it again"
                return await work.end(entry, ActionState.FAILED, why)
            if run.active in UP and work.clock.monotonic() >= asked_at + AGAIN_S:
                asked_at = work.clock.monotonic()
                await work.tell(StopUnit(unit=entry.unit))
        if work.is_late(entry):
            return await work.end(entry, ActionState.TIMED_OUT, f"{entry.unit} does not stop", down=True)  # it may yet
        await work.wait()


async def restart(work: UnitWork, entry: Entry) -> Entry:
    """It ends as *running*: that it serves again is seen by itself. Raises as ``drain`` does."""
    if entry.boot_id != work.boot_id:
        return await work.end(entry, ActionState.RUNNING, BOOTED)
    if entry.step is Step.WAITING:
        status = work.status(entry.replica)
        if status is None:
            raise Refused("nothing of it runs here any more")
        entry = await work.put(entry, unit=_unit_of(status), pid=status.pid)
        run = await work.read(entry.unit)
        if run.active != "active":
            raise Refused(f"{entry.unit} is {run.active}: systemd, or somebody, is at work on it already")
        work.insist(entry)
        entry = await work.put(entry, step=Step.ASKING, invocation=run.invocation)
    run = await work.read(entry.unit)
    if run.active in UP and run.invocation == entry.invocation:
        await work.tell(RestartUnit(unit=entry.unit))
    return await work.end(entry, ActionState.RUNNING, f"systemd restarts {entry.unit}")


async def release(work: UnitWork, entry: Entry) -> Entry:
    """Tried until it is known to be done, or is taken back (Halted)."""
    if not entry.down:
        return await work.end(entry, ActionState.DONE, "no unit of it is down by us")
    while True:
        try:
            return await _start(work, entry)
        except Unreachable:
            work.insist(entry)
            await work.wait()


async def _start(work: UnitWork, entry: Entry) -> Entry:
    run = await work.read(entry.unit)
    left = _whose_hands(entry, run)
    if left is not None:
        return await work.end(entry, ActionState.DONE, left, down=False)
    work.insist(entry)
    entry = await work.put(entry, step=Step.ASKING)
    await work.tell(StartUnit(unit=entry.unit))
    until = work.clock.monotonic() + STARTS_S
    while work.clock.monotonic() < until and run.active != "active":
        await work.wait()
        run = await work.read(entry.unit)
        if run.active == "failed" and run.invocation != entry.invocation:
            why = f"systemd has started {entry.unit}, and it has failed ({run.result}): a person must look"
            return await work.end(entry, ActionState.FAILED, why, down=False)
    return await work.end(entry, ActionState.DONE, f"systemd has started {entry.unit} again", down=False)


def _whose_hands(entry: Entry, run: UnitRun) -> str | None:
    """Why a unit that we have stopped is not ours to start any more; None if it is."""
    if run.active in UP:
        return f"{entry.unit} runs"
    if run.invocation and run.invocation != entry.invocation:
        return f"{entry.unit} has run since and was stopped again: it is left as it is"
    if run.file_state != entry.file_state and run.file_state in OUT_OF_USE:
        return f"{entry.unit} is {run.file_state} since: it is left as it is"
    return None


def _unit_of(status: ReplicaStatus) -> str:
    """Raises Refused if no unit runs it."""
    if status.owner is None or status.owner.kind != KIND:
        raise Refused(f"no unit of systemd runs it, but {status.owner or 'nobody that is known'}")
    return status.owner.name


DEEDS: dict[ActionKind, Callable[[UnitWork, Entry], Awaitable[Entry]]] = {
    ActionKind.DRAIN: drain,
    ActionKind.RESTART_REPLICA: restart,
    ActionKind.RELEASE: release,
}
