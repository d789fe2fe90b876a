"""Ripples: how far a change goes. What is touched is put on the lists of the work, with all that it may concern.

The other way round, an incident rests on nodes and deployments: it is *restless* once one of these has been touched.
"""

from collections.abc import Mapping

from controller.core.fleet.ledger import Ledger
from controller.core.fleet.nodes import Gpu, Node
from controller.core.fleet.replicas import Replica
from controller.core.fleet.roster import Roster
from controller.core.fleet.stimuli import Deployment
from controller.core.fleet.work import Work
from vocab.lines import IncidentLine, Subject


class Ripples:
    """Of one fleet, whose parts it shares; it changes none but the work."""

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        work: Work,
        nodes: Mapping[str, Node],
        gpus: Mapping[str, Gpu],
        gpus_at: Mapping[str, Mapping[str, None]],
        deployments: Mapping[str, Deployment],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._work = work
        self._nodes = nodes
        self._gpus = gpus
        self._gpus_at = gpus_at
        self._deployments = deployments

    def touch(self, subject: Subject) -> None:
        """It has changed; so may have what it is on, what is on it, and what shares its GPUs."""
        self._work.words[subject] = None
        if subject.gpu is not None:
            self._touch_gpu(subject.gpu)
        elif subject.node is not None:
            self._touch_node(subject.node)
        elif subject.replica is not None:
            self._touch_replica(subject.replica)
        elif subject.deployment is not None:
            self._work.deployments[subject.deployment] = None
            found = self._roster.of(subject.deployment)
            self._work.untold |= dict.fromkeys(node for replica in found for node in replica.nodes)
            self._work.turn(subject.deployment)
        else:
            self._touch_leave()

    def _touch_gpu(self, uuid: str) -> None:
        self._work.unsure[uuid] = None
        gpu = self._gpus.get(uuid)
        if gpu is not None:
            self._work.looks[gpu.node] = self._work.untold[gpu.node] = None
            self._work.turn(gpu.node)
        for replica in self._roster.on(uuid):
            self._note(replica)

    def _touch_node(self, name: str) -> None:
        self._work.nodes[name] = None
        self._work.looks[name] = self._work.untold[name] = None
        self._work.turn(name)
        for uuid in self._gpus_at.get(name, ()):
            self._work.words[Subject(gpu=uuid)] = None
            self._work.unsure[uuid] = None
        for replica in self._roster.at(name):
            self._note(replica)

    def _touch_replica(self, name: str) -> None:
        replica = self._roster.find(name)
        if replica is None:
            return
        self._note(replica)
        for node in replica.nodes:
            self._work.turn(node)
        for uuid in replica.gpus:
            self._work.words[Subject(gpu=uuid)] = None
            self._work.unsure[uuid] = None

    def _note(self, replica: Replica) -> None:
        self._work.words[replica.subject] = None
        for node in replica.nodes:
            self._work.looks[node] = self._work.untold[node] = None
        self._work.replicas[replica.id] = None
        self._work.doubtful[replica.id] = None
        self._work.deployments[replica.deployment] = None
        self._work.turn(replica.deployment)

    def touch_all(self) -> None:
        """Everything must be looked at: a new policy, another division."""
        for name in self._nodes:
            self._touch_node(name)
        self._touch_leave()

    def _touch_leave(self) -> None:
        """What may be done has changed, not how anything stands: a pause, room in the budget, the end of a start."""
        self._work.replicas |= dict.fromkeys(self._roster.living)
        self._work.doubtful |= dict.fromkeys(self._roster.living)
        self._work.deployments |= dict.fromkeys(self._deployments)
        self._work.all_untold = True
        self._work.turn(None)

    def _rests_on(self, incident: IncidentLine) -> list[str]:
        """The nodes and deployments on which the next step of an incident depends."""
        subject = incident.subject
        replicas = [replica for replica in [self._roster.find(subject.replica)] if replica is not None]
        gpu = self._gpus.get(subject.gpu or "")
        node = gpu.node if gpu is not None else subject.node
        replicas += self._roster.on(subject.gpu) if subject.gpu else self._roster.at(subject.node or "")
        names = (node or "", *(at for each in replicas for at in each.nodes), *(each.deployment for each in replicas))
        return list(dict.fromkeys(names))

    def restless(self) -> list[IncidentLine]:
        """The open incidents for which something may be due: whatever their next step rests on has changed."""
        found, marks, opened = [], {}, self._ledger.open_incidents
        for key in sorted(self._work.stirred(), key=lambda key: opened.get(key, 0)):
            if key not in opened:
                self._work.let_rest(key, ())
                continue
            incident = self._ledger.incidents[key]
            names = self._rests_on(incident)
            marks[key] = self._work.mark(names)
            if self._work.quiet.get(key) == marks[key]:
                self._work.let_rest(key, names)
            else:
                found.append(incident)
        self._work.marks = marks
        return found
