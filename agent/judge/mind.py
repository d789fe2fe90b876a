"""What a judge remembers, as one struct: stored whole, so that a restart of the agent changes no verdict."""

import msgspec

from agent.judge.alone import Alone
from agent.judge.blame import Blame
from agent.judge.folds import Folds
from agent.judge.gauges import Gauges
from agent.judge.links import Memory
from agent.judge.standing import Board
from agent.probes.log import Log
from agent.probes.pushed import PushedProbe
from agent.probes.replica import ReplicaProbe
from agent.probes.scene import Scene
from agent.probes.source import SourceProbe
from agent.probes.tape import Tape


class Mind(msgspec.Struct):
    """All that a judge remembers."""

    scene: Scene
    tape: Tape = msgspec.field(default_factory=Tape)
    log: Log = msgspec.field(default_factory=Log)
    pushed: PushedProbe = msgspec.field(default_factory=PushedProbe)
    folds: Folds = msgspec.field(default_factory=Folds)
    board: Board = msgspec.field(default_factory=Board)
    memory: Memory = msgspec.field(default_factory=Memory)
    alone: Alone = msgspec.field(default_factory=Alone)
    blame: Blame = msgspec.field(default_factory=Blame)
    gauges: Gauges = msgspec.field(default_factory=Gauges)
    replica: ReplicaProbe = msgspec.field(default_factory=ReplicaProbe)
    source: SourceProbe = msgspec.field(default_factory=SourceProbe)
