"""The adapter of Slurm. A node is closed by a drain whose reason begins with ``corral:`` and names the hold.

Only such a drain is ever ended; a reason that somebody else wrote stays, and means that they are at work. The state
is read right before each change: Slurm has no compare-and-set, and a resume of a node that is not drained is an error.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from controller.adapters.config import SlurmConfig
from controller.adapters.program import Answer, run
from controller.adapters.slurm import states
from controller.adapters.slurm.states import SlurmNode
from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder
from vocab.errors import Refused, Unreachable
from vocab.states import ActionKind

OURS = "corral:"  # our reasons begin with it
MOST_REASON = 160  # characters of a reason: sinfo's columns and people's patience
PLAIN = ("-N", "-h", "-o", "%N|%T|%E")
DENIED = ("Invalid user id", "Access/permission denied", "Access denied")
ENV = {"LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}


class Slurm:
    """One cluster, as ``scontrol`` and ``sinfo`` reach it."""

    name = "slurm"

    def __init__(self, config: SlurmConfig) -> None:
        self._config = config
        self._env = {**ENV, **({"SLURM_CONF": config.conf} if config.conf else {})}
        self._json = True  # until sinfo says that it cannot

    async def look(self) -> Sequence[Managed]:
        """All nodes. Raises Unreachable."""
        told = await self._run(self._config.scontrol, "show", "config")
        began = states.boot_time(told.out)
        began_at = datetime.fromisoformat(began).replace(tzinfo=UTC).timestamp() if began else 0.0
        return [_managed(node, began_at) for node in await self._nodes()]

    async def _nodes(self) -> list[SlurmNode]:
        if self._json:
            told = await run((self._config.sinfo, "-N", "--json"), answer_s=self._config.answer_s, env=self._env)
            if told.code == 0:
                return states.of_json(told.out)
            self._json = not any(word in told.err for word in ("unrecognized option", "serializer", "JSON", "json"))
        return states.of_plain((await self._run(self._config.sinfo, *PLAIN)).out)

    async def act(self, order: OwnerOrder) -> None:
        """Drain or resume a node, if its state is not as wanted. Raises Unreachable or Refused."""
        read = states.of_plain((await self._run(self._config.sinfo, "-n", order.node, *PLAIN)).out)
        if not read:
            raise Refused(f"slurm has no node {order.node}")
        node, ours = read[0], _is_ours(read[0])
        if order.action.of is ActionKind.DRAIN and not node.is_drained and not node.is_down:
            await self._update(order.node, "State=DRAIN", f"Reason={reason(order)}")
        elif order.action.of is ActionKind.RELEASE and ours:
            await self._update(order.node, "State=RESUME")

    async def _update(self, node: str, *words: str) -> None:
        told = await self._run(self._config.scontrol, "update", f"NodeName={node}", *words, check=False)
        if told.code == 0:
            return
        if any(word in told.told for word in DENIED):
            raise Refused(
                f"scontrol: {told.told}: the controller's user needs AdminLevel=Operator in Slurm, or its user"
            )
        raise Unreachable(f"scontrol update of {node}: {told.told}")

    async def _run(self, program: str, *words: str, check: bool = True) -> Answer:
        told = await run((program, *words), answer_s=self._config.answer_s, env=self._env)
        if check and told.code != 0:
            raise Unreachable(f"{program} {words[0]}: {told.told}")
        return told

    async def close(self) -> None:
        """It keeps nothing open."""


def _is_ours(node: SlurmNode) -> bool:
    return node.is_drained and node.reason.startswith(OURS)


def _managed(node: SlurmNode, began_at: float) -> Managed:
    foreign = node.is_drained and not _is_ours(node)
    return Managed(
        node=node.name,
        by=Slurm.name,
        ours=(node.name,) if _is_ours(node) else (),
        busy=node.busy,
        other=f"drained in slurm by somebody else ({node.reason or 'no reason given'})" if foreign else "",
        began_at=began_at,
    )


def reason(order: OwnerOrder) -> str:
    """The reason of a drain: our prefix, the hold, and why, on one short line."""
    words = "".join(letter if letter.isprintable() else " " for letter in order.action.why)
    text = f"{OURS}{order.hold} {' '.join(words.split())}"
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…"
