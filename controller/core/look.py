"""The views, drawn from the fleet: for the API, and the last lines of a replay."""

from controller.core import words
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import FLEET
from controller.core.fleet.nodes import Gpu, Node
from controller.core.fleet.replicas import Replica
from controller.core.fleet.stimuli import Deployment
from controller.core.fleet.views import DeploymentView, GpuView, NodeView, ReplicaView, View
from controller.core.placement.deployments import staying
from controller.core.placement.placement import is_able, is_free, is_placeable, takes_work
from controller.core.placement.shortage import why_short
from controller.core.placement.stranded import is_stranded
from controller.core.policy import budget, pause
from controller.core.repairs.workflow import phase_of
from controller.core.replicas import restart
from vocab.activity import activity
from vocab.lines import FinalLine, Subject
from vocab.readings import Readings
from vocab.states import Health, Level, NodeState, Phase

HEALTHY = Health.HEALTHY.value


def view(
    fleet: Fleet, now: float, nodes: tuple[NodeView, ...], replicas: tuple[ReplicaView, ...], counted: dict[str, int]
) -> View:
    """Everything at one moment, around what the album has drawn."""
    ledger = fleet.ledger
    seen: dict[str, str] = {}  # what keeps work off each GPU, as far as anybody has asked
    return View(
        paused=ledger.pauses.everywhere is not None,
        pauses=tuple(pause.standing(fleet)),
        settled=fleet.patience.is_settled(now),
        nodes=nodes,
        deployments=tuple(_deployment(fleet, fleet.deployments[name], now, seen) for name in sorted(fleet.deployments)),
        replicas=replicas,
        incidents=tuple(ledger.incidents[key] for key in ledger.open_incidents),
        began=dict(ledger.began_at),
        conditions=tuple(ledger.conditions[key] for key in ledger.open_conditions.values()),
        holds=tuple(ledger.holds.values()),
        actions=tuple(ledger.live()),
        halted=halted(fleet),
        demoted=tuple(ledger.demoted.values()),
        managers=tuple(fleet.managers.views()),
        policy=fleet.settings.policy,
        shadowed=fleet.settings.unadopted,
        precision=fleet.records.of(ledger, now),
        budgets=budget.now_used(fleet, now),
        counts=counted,
    )


def silent(fleet: Fleet) -> dict[str, str]:
    """The nodes that are not live, each with the address of its agent."""
    known = (node.facts for node in fleet.nodes.values() if fleet.node_state(node.name) != NodeState.LIVE)
    return {facts.node: facts.address for facts in known if facts is not None and facts.address}


def halted(fleet: Fleet) -> dict[str, str]:
    """Open incidents on which nothing goes on by itself, and why: left to a person, or without leave for a hold."""
    ledger = fleet.ledger
    moving = {action.incident for action in ledger.live()}
    told = {hold.incident: hold.reason for hold in ledger.would_holds.values()} | ledger.handed_over
    return {key: told[key] for key in ledger.open_incidents if key in told and key not in moving}


def node(fleet: Fleet, node: Node, now: float) -> NodeView:
    """A node with its GPUs."""
    facts, subject, takes = node.facts, Subject(node=node.name), takes_work(fleet, node.name)
    return NodeView(
        node=node.name,
        virtual=facts.virtual if facts else False,
        level=(fleet.level(node.name) or Level.OBSERVE).value,
        state=fleet.ledger.words.get(subject, "unknown"),
        boot_id=facts.boot_id if facts else "",
        driver=facts.driver if facts else None,
        version=facts.version if facts else "",
        address=facts.address if facts else "",
        paused=node.paused,
        unknown_because=facts.unknown_because if facts else None,
        seen_at=node.reported_at,
        holds=tuple(fleet.ledger.standing(subject)),
        conditions=tuple(fleet.conditions_on(subject)),
        others=tuple(said.other for said in fleet.managers.of(node.name) if said.other),
        gpus=tuple(_gpu(fleet, gpu, now, takes=takes) for gpu in fleet.gpus_at(node.name)),
    )


def _gpu(fleet: Fleet, gpu: Gpu, now: float, *, takes: bool) -> GpuView:
    identity, subject, status = gpu.identity, Subject(gpu=gpu.identity.uuid), gpu.status
    living, clear = fleet.roster.on(identity.uuid), fleet.is_clear(identity.uuid)
    phase = phase_of(fleet, identity.uuid, now)
    return GpuView(
        uuid=identity.uuid,
        node=gpu.node,
        index=identity.index,
        name=identity.name,
        pci=identity.pci,
        state=words.of_gpu(fleet, identity.uuid, now, phase) or "unknown",
        health=HEALTHY if clear else fleet.health(identity.uuid).value,
        phase=phase.value,
        fresh=fleet.is_fresh(gpu, now),
        placeable=takes and is_able(fleet, gpu, now),
        stranded=bool(living) and is_stranded(fleet, identity.uuid),
        holds=() if clear else tuple(fleet.holds_on(identity.uuid)),
        conditions=() if clear else tuple(fleet.conditions_on(subject)),
        incidents=() if clear else tuple(fleet.ledger.incidents_of.get(subject, ())),
        readings=status.readings if status else None,
        activity=_does(status.readings) if status else None,
        error=status.error if status else None,
        replica=living[0].id if living else None,
        used_by=tuple(dict.fromkeys(restart.owner(fleet, each) for each in living if each.observed)),
    )


def _does(readings: Readings | None) -> str | None:
    found = activity(readings)
    return None if found is None else str(found)


def replica(fleet: Fleet, replica: Replica) -> ReplicaView:
    """A replica."""
    status, deployment = replica.status, fleet.deployments.get(replica.deployment)
    return ReplicaView(
        replica=replica.id,
        deployment=replica.deployment,
        state=fleet.word_of(replica).value,
        url=status.url if status else "",
        node=replica.node,
        gpus=replica.gpus,
        admitting=status.admitting if status else False,
        ready=status.ready if status else False,
        model=(status.model if status else "") or (deployment.model if deployment else "") or replica.deployment,
        running=status.running if status else 0,
        waiting=status.waiting if status else 0,
        open_requests=status.open_requests if status else 0,
        kv_ratio=status.kv_ratio if status else None,
        attempt=status.attempt if status else 1,
        pid=status.pid if status else None,
        observed=replica.observed,
        owner=str(status.owner) if status and status.owner else "",
        serves=status.serves if status else True,
        engine=(status.engine if status else "") or (deployment.engine if deployment else ""),
        nodes=replica.nodes if replica.is_group else (),
    )


def _deployment(fleet: Fleet, deployment: Deployment, now: float, seen: dict[str, str]) -> DeploymentView:
    return DeploymentView(
        name=deployment.name,
        model=deployment.model,
        engine=deployment.engine,
        wanted=deployment.replicas,
        replicas=len(staying(fleet, deployment.name)),
        ready=sum(replica.is_ready for replica in fleet.roster.of(deployment.name)),
        min_ready=deployment.min_ready,
        gpus_per_replica=deployment.gpus_per_replica,
        nodes_per_replica=deployment.nodes_per_replica,
        short_because=why_short(fleet, deployment, now, seen),
    )


def counts(fleet: Fleet, now: float) -> dict[str, int]:
    """The fleet in GPUs. ``overcommitted``: allocated, and would take no work; ``free`` is never negative."""
    gpus = fleet.gpus
    allocated = [gpu for uuid, gpu in gpus.items() if fleet.roster.on(uuid)]
    in_service = [
        uuid
        for uuid, gpu in gpus.items()
        if fleet.is_fresh(gpu, now) and not fleet.holds_on(uuid) and phase_of(fleet, uuid, now) is Phase.IN_SERVICE
    ]
    return {
        "total": sum(not fleet.has_left(uuid) for uuid in gpus),
        "in_service": len(in_service),
        "free": sum(is_free(fleet, gpu, now) for gpu in gpus.values()),
        "unhealthy": sum(fleet.health(uuid) in {Health.FAILED, Health.LOST} for uuid in gpus),
        "stranded": sum(is_stranded(fleet, uuid) for uuid in gpus),
        "overcommitted": sum(not is_placeable(fleet, gpu, now) for gpu in allocated),
    }


def final(fleet: Fleet, now: float) -> list[FinalLine]:
    """Where every subject stands: GPUs, nodes, replicas, and the fleet last."""
    lines = [
        _final(fleet, Subject(gpu=gpu.identity.uuid), words.of_gpu(fleet, gpu.identity.uuid, now) or "unknown", now)
        for node in sorted(fleet.nodes)
        for gpu in fleet.gpus_at(node)
    ]
    lines += [_final(fleet, Subject(node=node), fleet.node_state(node), now) for node in sorted(fleet.nodes)]
    everyone = sorted(fleet.roster.living | fleet.roster.departed)
    lines += [_final(fleet, Subject(replica=name), fleet.ledger.words[Subject(replica=name)], now) for name in everyone]
    return [*lines, FinalLine(at=now, subject=FLEET, state="fleet", counts=counts(fleet, now))]


def _final(fleet: Fleet, subject: Subject, state: str, now: float) -> FinalLine:
    ledger = fleet.ledger
    return FinalLine(
        at=now,
        subject=subject,
        state=state,
        holds=tuple(ledger.holds_of.get(subject, ())),
        conditions=tuple(ledger.conditions_of.get(subject, ())),
        incidents=tuple(ledger.incidents_of.get(subject, ())),
    )
