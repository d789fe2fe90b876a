"""The reset of a GPU with all that resets with it.

    look      nobody else's process and no replica of ours has one of these GPUs open
    gather    evidence, before the reset wipes it out
    stop      the services that keep them open; the list is on disk before the first is stopped
    prove     no process at all has them open
    reset     by the root helper, which looks once more
    restore   services are started in reverse

Nobody's process is ever ended for it, but our own children that read the driver. Whatever happens after *stop*, the
services come back: here, or in the next agent (``recovery``).
"""

import logging

from agent.executor.journal import Entry, Step
from agent.executor.work import Halted, Outcome, Work, told
from agent.roothelper.duty import in_the_way
from agent.roothelper.requests import FABRIC_MANAGER, Done, Failed, Holder, ResetGpus, StartService, StopService
from vocab.errors import Refused, Unreachable
from vocab.states import ActionState

log = logging.getLogger(__name__)


async def reset(work: Work, entry: Entry) -> Entry:
    """Do it all; the entry with its outcome, its services back or listed as still stopped.

    Raises Refused, with nothing touched, if it may not be.
    """
    units = await _look(work, entry.gpus)
    entry = await work.step(entry, step=Step.GATHERING)
    await work.gather(entry)
    work.insist(entry)
    entry = await work.step(entry, step=Step.STOPPING, stopped=units)
    try:
        await _empty(work, entry)
        work.insist(entry)
        entry = await work.step(entry, step=Step.REPAIRING)
        outcome = await _act(work, entry)
    except Halted as error:
        outcome = Outcome(ActionState.FAILED, f"stopped before the reset: {error}")
    except Refused as error:
        outcome = Outcome(ActionState.REFUSED, str(error))
    except Unreachable as error:
        seen = entry.step is not Step.REPAIRING
        outcome = Outcome(ActionState.FAILED if seen else ActionState.TIMED_OUT, str(error))
    entry = await work.step(entry, step=Step.RESTORING, state=outcome.state, why=outcome.why)
    if outcome.state is ActionState.DONE:
        work.around.was_reset(entry.gpus)
    return await restore(work, entry)


async def _look(work: Work, gpus: tuple[str, ...]) -> tuple[str, ...]:
    """The services to stop. Raises Refused naming whoever else is in the way."""
    survey = await work.survey(gpus)
    services, drivers, replicas = await work.services(), work.around.driver_pids(), work.around.replica_pids()
    others = tuple(each for each in survey.holders if each.unit not in services and each.pid not in drivers)
    ours = tuple(each for each in others if each.pid in replicas)
    if ours:
        raise Refused(f"a replica still runs there: {told(ours)}")
    if others:
        raise Refused(f"a process that is not ours uses it: {told(others)}")
    whole = set(gpus) >= set(work.around.gpus())
    return tuple(unit for unit in survey.running if unit != FABRIC_MANAGER or (whole and _holds(unit, survey.holders)))


def _holds(unit: str, holders: tuple[Holder, ...]) -> bool:
    return any(each.unit == unit for each in holders)


async def _empty(work: Work, entry: Entry) -> None:
    """Stop what keeps the GPUs open, ours first, and prove that nothing does. Raises Refused or Unreachable."""
    await work.around.let_go()
    for unit in entry.stopped:
        work.insist(entry)
        reply = await work.ask(StopService(unit=unit))
        if isinstance(reply, Failed):
            raise Refused(f"{unit} could not be stopped: {reply.why}")
    holders = in_the_way((await work.survey(entry.gpus)).holders)
    if holders:
        raise Refused(f"it is still in use: {told(holders)}")


async def _act(work: Work, entry: Entry) -> Outcome:
    reply = await work.ask(ResetGpus(gpus=entry.gpus))
    if isinstance(reply, Done):
        return Outcome(ActionState.DONE, "the GPU was reset")
    why = reply.why if isinstance(reply, Failed) else "an odd answer"
    unseen = isinstance(reply, Failed) and reply.unseen
    return Outcome(ActionState.TIMED_OUT if unseen else ActionState.FAILED, why)


async def restore(work: Work, entry: Entry) -> Entry:
    """Start again what was stopped; the entry ended, or with the services that did not come back."""
    stopped = await start_again(work, entry)
    return await work.step(entry, step=Step.RESTORING if stopped else Step.ENDED, stopped=stopped)


async def start_again(work: Work, entry: Entry) -> tuple[str, ...]:
    """Start what was stopped, last first, and our own children; what did not come back, in the order of stopping."""
    left = []
    for unit in reversed(entry.stopped):
        try:
            reply = await work.ask(StartService(unit=unit))
            why = None if isinstance(reply, Done) else getattr(reply, "why", "an odd answer")
        except (Refused, Unreachable) as error:
            why = str(error)
        if why is not None:
            log.error("a service could not be started again", extra={"unit": unit, "error": why})
            left.append(unit)
    work.around.take_up()
    return tuple(reversed(left))
