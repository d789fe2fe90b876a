"""The map of the fleet: which nodes and GPUs match, by pool, and their tiles as markup.

Ten thousand tiles are one short anchor each, put together as text; a node whose GPUs have not changed keeps its markup.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from controller.core.fleet.views import GpuView, NodeView, ReplicaView, View
from controller.pages.words import plain, shape, tone

Text = Annotated[str, msgspec.Meta(max_length=200)]

FEW = 64  # GPUs: so many are shown as cards, with what they read
MOST_CARDS = 256  # a page of more says nothing at a glance
STATES = (
    "healthy", "degraded", "cordoned", "fenced", "draining", "repairing", "validating", "probation", "quarantined",
    "lost", "failed", "unknown", "removed",
)  # fmt: skip


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted, as the form sends it; empty: anything. ``state`` ``trouble``: all but healthy ones."""

    state: Text = ""
    pool: Text = ""
    deployment: Text = ""
    model: Text = ""
    node: Text = ""
    text: Text = ""
    show: Literal["", "cards", "tiles"] = ""

    @property
    def narrows(self) -> bool:
        """Whether it leaves anything out."""
        return any((self.state, self.pool, self.deployment, self.model, self.node, self.text))

    def without_state(self) -> str:
        """The rest of it as a query, for the links of the legend."""
        kept = msgspec.structs.asdict(self)
        del kept["state"]
        return "&".join(f"{name}={quote(value)}" for name, value in kept.items() if value)


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What the filter can be set to."""

    states: tuple[str, ...]
    pools: tuple[str, ...]
    deployments: tuple[str, ...]
    models: tuple[str, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A node with those of its GPUs that match."""

    node: NodeView
    gpus: tuple[GpuView, ...]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of one pool; ``pool`` is empty where the fleet has none."""

    pool: str
    nodes: tuple[Shown, ...]

    @property
    def gpus(self) -> int:
        """How many GPUs are shown."""
        return sum(len(each.gpus) for each in self.nodes)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What matches. ``counts``: GPUs by state, whatever state is asked for."""

    sections: tuple[Section, ...]
    counts: dict[str, int]
    gpus: int
    cards: bool
    left_out: int = 0  # nodes that the cards have no room for


class _Replicas:
    def __init__(self, replicas: Iterable[ReplicaView]) -> None:
        self._of: dict[str, ReplicaView] = {replica.replica: replica for replica in replicas}

    def on(self, gpu: GpuView) -> ReplicaView | None:
        return self._of.get(gpu.replica or "")


def choices(view: View, pools: Mapping[str, tuple[str, ...]]) -> Choices:
    """What there is to choose from."""
    named = {each.name for each in view.deployments} | {each.deployment for each in view.replicas}
    return Choices(
        states=STATES,
        pools=tuple(sorted(pools)),
        deployments=tuple(sorted(named - {""})),
        models=tuple(sorted({each.model for each in view.replicas} - {""})),
    )


def find(view: View, wanted: Filter, pools: Mapping[str, tuple[str, ...]]) -> Found:
    """The nodes and GPUs that match."""
    replicas, counts = _Replicas(view.replicas), Counter[str]()
    pool_of = {node: pool for pool, nodes in pools.items() for node in nodes}
    sections: dict[str, list[Shown]] = {}
    shown = 0
    for node in view.nodes:
        pool = pool_of.get(node.node, "")
        if (wanted.pool and pool != wanted.pool) or (wanted.node and node.node != wanted.node):
            continue
        gpus = _matching(node, wanted, replicas)
        counts.update(gpu.state for gpu in gpus)
        gpus = _in_state(gpus, wanted.state)
        if gpus or not wanted.narrows or (wanted.node and not wanted.state):
            shown += len(gpus)
            sections.setdefault(pool, []).append(Shown(node=node, gpus=gpus))
    cards = wanted.show == "cards" or (wanted.show == "" and shown <= FEW)
    made = tuple(Section(pool=pool, nodes=tuple(sections[pool])) for pool in sorted(sections))
    left_out = 0
    if cards:
        made, left_out = _first(made, MOST_CARDS)
    return Found(sections=made, counts=dict(counts), gpus=shown, cards=cards, left_out=left_out)


def _matching(node: NodeView, wanted: Filter, replicas: _Replicas) -> tuple[GpuView, ...]:
    """Its GPUs that match all but the state."""
    if not (wanted.deployment or wanted.model or wanted.text):
        return node.gpus
    text = wanted.text.lower().strip()
    of_node = text in node.node.lower()
    return tuple(
        gpu for gpu in node.gpus if _serves(replicas.on(gpu), wanted) and (of_node or not text or _says(gpu, text))
    )


def _serves(replica: ReplicaView | None, wanted: Filter) -> bool:
    if not (wanted.deployment or wanted.model):
        return True
    if replica is None:
        return False
    return wanted.deployment in {"", replica.deployment} and wanted.model in {"", replica.model}


def _says(gpu: GpuView, text: str) -> bool:
    words = [gpu.uuid, gpu.pci, gpu.name, gpu.replica, gpu.activity, gpu.error]
    words += [each.code for each in gpu.conditions] + [f"{hold.owner} {hold.reason}" for hold in gpu.holds]
    return any(text in word.lower() for word in words if word)


def _in_state(gpus: tuple[GpuView, ...], state: str) -> tuple[GpuView, ...]:
    if not state:
        return gpus
    if state == "trouble":
        return tuple(gpu for gpu in gpus if gpu.state not in {"healthy", "removed"})
    return tuple(gpu for gpu in gpus if gpu.state == state)


def _first(sections: tuple[Section, ...], most: int) -> tuple[tuple[Section, ...], int]:
    """The first nodes, with at most so many GPUs, and how many nodes are left out."""
    kept, room, left = [], most, 0
    for section in sections:
        nodes = []
        for shown in section.nodes:
            if room > 0:
                nodes.append(shown)
                room -= len(shown.gpus)
            else:
                left += 1
        if nodes:
            kept.append(Section(pool=section.pool, nodes=tuple(nodes)))
    return tuple(kept), left


class Tiles:
    """The markup of nodes, kept as long as what they show is the same."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Markup]] = {}

    def of(self, shown: Shown) -> Markup:
        """One node with its tiles: an item of a list."""
        node = shown.node
        sign = (
            node.state,
            len(node.holds),
            len(node.conditions),
            node.paused,
            *((g.uuid, g.state) for g in shown.gpus),
        )
        kept = self._kept.get(node.node)
        if kept is not None and kept[0] == sign:
            return kept[1]
        made = Markup(_item(shown))  # noqa: S704 - each name in it is escaped
        self._kept[node.node] = (sign, made)
        return made


def _item(shown: Shown) -> str:
    node = shown.node
    name = escape(node.node)
    state = "" if node.state == "live" else f' <b data-tone="{tone(node.state)}">{shape(node.state)} {node.state}</b>'
    marks = ""
    if node.paused:
        marks += ' <b data-tone="bad">paused</b>'
    if node.holds or node.conditions:
        marks += f' <b data-tone="held">{len(node.holds)} ⊘ {len(node.conditions)} ▲</b>'
    tiles = "".join(_tile(gpu) for gpu in shown.gpus)
    return (
        f'<li id="n-{name}"><a class="n" href="/?node={quote(node.node)}">{name}</a>{state}{marks}<p>{tiles}</p></li>'
    )


def _tile(gpu: GpuView) -> str:
    state = plain(gpu.state)
    return (
        f'<a class="t" tabindex="-1" data-tone="{tone(gpu.state)}" href="/gpus/{quote(gpu.uuid)}"'
        f' aria-label="GPU {gpu.index} {state}">{shape(gpu.state)}</a>'
    )
