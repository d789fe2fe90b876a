"""The reboot of the node: refused while anybody but us works on it. Whether it happened, the next boot id says."""

import asyncio

from agent.executor.journal import Entry, Step
from agent.executor.work import Halted, Outcome, Work, told
from agent.roothelper.duty import strangers
from agent.roothelper.requests import Failed, Reboot
from vocab.errors import Refused, Unreachable
from vocab.states import ActionState

GOES_WITHIN_S = 300.0  # systemd gives services 90 s each to stop; who is up after this is not going down
LEAVES_WITHIN_S = 60.0  # an engine's drain; a person has approved the boot with what it takes
LOOK_S = 1.0
DRAIN_LOOK_S = 0.2


async def reboot(work: Work, entry: Entry) -> Entry:
    """Ask for it and wait for the end, which normally ends this process; else the entry with its outcome.

    Raises Refused, with nothing touched, if it may not be.
    """
    await _look(work)
    entry = await work.step(entry, step=Step.GATHERING)
    await work.gather(entry)
    work.insist(entry)
    work.around.go_down()
    try:
        await _emptied(work, entry)
        entry = await work.step(entry, step=Step.REPAIRING)
        reply = await work.ask(Reboot())
        if isinstance(reply, Failed) and not reply.unseen:
            return await _end(work, entry, Outcome(ActionState.FAILED, reply.why))
    except Halted as error:
        return await _end(work, entry, Outcome(ActionState.FAILED, f"stopped before the reboot: {error}"))
    except Refused as error:
        return await _end(work, entry, Outcome(ActionState.REFUSED, str(error)))
    except Unreachable:
        pass  # it may have gone down with the node
    return await await_boot(work, entry)


async def _look(work: Work) -> None:
    """Raises Refused naming whoever is in the way."""
    survey = await work.survey(work.around.gpus())
    ours = work.around.driver_pids() | work.around.replica_pids()
    foreign = tuple(each for each in strangers(survey.holders, await work.services()) if each.pid not in ours)
    if foreign:
        raise Refused(f"a process that is not ours uses a GPU: {told(foreign)}")
    if survey.users is None or survey.inhibitors is None:
        raise Refused("nobody can say who is logged in here or what must not be interrupted")
    if survey.users or survey.inhibitors:
        raise Refused(f"in the way: {'; '.join((*survey.users, *survey.inhibitors))}")


async def _emptied(work: Work, entry: Entry) -> None:
    """Give replicas the time to end their requests; what does not is ended by the shutdown. Raises Halted."""
    work.insist(entry)
    until = work.clock.monotonic() + LEAVES_WITHIN_S
    while work.around.replica_pids() and work.clock.monotonic() < until:
        await asyncio.sleep(DRAIN_LOOK_S)
        work.insist(entry)


async def await_boot(work: Work, entry: Entry) -> Entry:
    """Wait for the node to go down, or to be another boot; the entry with its outcome."""
    until = work.clock.monotonic() + GOES_WITHIN_S
    while work.clock.monotonic() < until:
        if work.around.boot_id != entry.boot_id:
            return await _end(work, entry, Outcome(ActionState.DONE, "the node has a new boot id"))
        await asyncio.sleep(LOOK_S)
    why = f"the reboot was accepted, and the node still runs after {GOES_WITHIN_S:.0f} s"
    return await _end(work, entry, Outcome(ActionState.FAILED, why))


async def _end(work: Work, entry: Entry, outcome: Outcome) -> Entry:
    if outcome.state is not ActionState.DONE:
        work.around.stay_up()
    return await work.step(entry, step=Step.ENDED, state=outcome.state, why=outcome.why)
