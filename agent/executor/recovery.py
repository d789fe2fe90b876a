"""What a new agent makes of a repair that an earlier one did not finish. A table: the step on disk decides.

waiting, gathering     nothing was touched: it failed; the controller may order it again
stopping               services are brought back: it failed
repairing a GPU        services are brought back; its end was not seen, so it is unknown, and the GPU is validated
repairing the node     it is waited for
restoring              services are brought back; the outcome is known
any, in another boot   the node has booted, which is a reset and a reboot alike; services are brought back
"""

from agent.executor.journal import Entry, Step
from agent.executor.reboot import await_boot
from agent.executor.reset import restore
from agent.executor.work import Work
from vocab.states import ActionKind, ActionState

BEGAN_NOT = "the agent ended before the repair had begun"


async def recover(work: Work, entry: Entry) -> Entry:
    """Finish or undo it; the entry with its outcome."""
    if entry.state is None and entry.boot_id != work.around.boot_id:
        entry = await work.step(entry, step=Step.RESTORING, state=ActionState.DONE, why="the node has a new boot id")
    elif entry.step is Step.REPAIRING and entry.order.of is ActionKind.REBOOT_NODE:
        return await await_boot(work, entry)
    elif entry.step is Step.REPAIRING:
        why = "its end was not seen: the agent ended meanwhile"
        entry = await work.step(entry, step=Step.RESTORING, state=ActionState.TIMED_OUT, why=why)
    elif entry.state is None:
        entry = await work.step(entry, step=Step.RESTORING, state=ActionState.FAILED, why=BEGAN_NOT)
    return await restore(work, entry)
