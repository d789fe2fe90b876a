"""The report as frozen types. Times are seconds since the epoch; a GPU's ``place`` is NODE and its address there."""

import msgspec


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU as far as logs and metrics name it: ``gpu`` is its UUID, or NODE/ADDRESS where nothing tells it."""

    gpu: str
    node: str
    pci: str | None = None
    serial: str | None = None
    board: str | None = None

    @property
    def name(self) -> str:
        """For people: the serial number, else the shortest that tells it apart."""
        return self.serial or (self.gpu[:12] if self.gpu.startswith("GPU-") else self.gpu)

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.node} {self.pci}" if self.pci else self.node


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, or a whole node (``gpu`` None), that should be out of service now."""

    node: str
    gpu: Gpu | None
    code: str
    title: str
    recovery: str
    since: float
    events: int
    line: str


class Missed(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that asked for a repair, and that stood for ``stood_s``; ``ended_by`` None: it stands."""

    node: str
    gpu: Gpu | None
    code: str
    title: str
    recovery: str
    since: float
    stood_s: float
    ended_by: str | None
    repeats: int


class Lemon(msgspec.Struct, frozen=True, kw_only=True):
    """A card that fails far more often than others of its board."""

    gpu: Gpu
    score: float
    lemon: bool
    signals: tuple[str, ...]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """How often a code was seen, and where; ``asks``: whether Corral takes a GPU out of service for it."""

    code: str
    title: str
    severity: str
    recovery: str
    events: int
    lines: int
    gpus: int
    nodes: int
    asks: bool


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What Corral would have done at level repair, where each repair works, and what that takes.

    ``waited``: holds that a budget would not have allowed at once. ``served_faulty_s``: how long GPUs were in service,
    in fact, with a fault that asks for a repair.
    """

    holds: int
    waited: int
    repairs: dict[str, int]
    held_gpu_s: float
    fleet_gpu_s: float
    most_at_once: int
    served_faulty_s: float
    rules: dict[str, int]
    quarantined: int


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """How a GPU spent its time, by its metrics: seconds by the word for it; ``word``: the one that stands out."""

    gpu: Gpu
    word: str
    share: float
    utilization: float
    sm_active: float | None
    seconds: dict[str, float]


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A vLLM engine by its metrics: shares of its time; ``waiting``: with requests in its queue."""

    engine: str
    model: str
    seen_s: float
    empty: float
    waiting: float
    kv_full: float


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What metrics say of how GPUs were used; ``step_s``: of their averages. ``unknown``: GPUs without activity."""

    source: str
    step_s: float
    gpus: int
    unknown: int
    seconds: dict[str, float]
    worst: tuple[Idle, ...]
    engines: tuple[Engine, ...]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report. ``assumed_gpus``: GPUs that nothing names, taken to be there for the budgets."""

    made_at: float
    since: float | None
    until: float | None
    nodes: int
    gpus: int
    assumed_gpus: int
    files: int
    lines: int
    unparsed: int
    unread: tuple[str, ...]
    standing: tuple[Standing, ...]
    missed: tuple[Missed, ...]
    lemons: tuple[Lemon, ...]
    faults: tuple[Fault, ...]
    cost: Cost | None
    usage: Usage | None = None

    @property
    def days(self) -> float:
        """What the logs span."""
        return 0.0 if self.since is None or self.until is None else (self.until - self.since) / 86_400.0
