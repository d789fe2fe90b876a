"""A machine in memory for tests of the duty: what it has, what it was told, and who is in the way."""

from agent.roothelper.requests import AnyReply, Done, Holder, Piece

DCGM, PERSISTENCED, FABRIC = "nvidia-dcgm.service", "nvidia-persistenced.service", "nvidia-fabricmanager.service"
SERVICES = (DCGM, PERSISTENCED, FABRIC)
GPUS = ("GPU-00000000-0000", "GPU-00000001-0000")


class FakeMachine:
    verbs = ("reset", "reboot", "services", "collect")

    def __init__(self) -> None:
        self.held: list[Holder] = []
        self.people: tuple[str, ...] | None = ()
        self.inhibiting: tuple[str, ...] | None = ()
        self.active = list(SERVICES)
        self.did: list[str] = []
        self.breaks = False

    def _do(self, what: str) -> AnyReply:
        if self.breaks:
            raise OSError(5, "input/output error")
        self.did.append(what)
        return Done()

    def holders(self, gpus: tuple[str, ...]) -> tuple[Holder, ...]:
        return tuple(each for each in self.held if set(each.gpus) & set(gpus))

    def gpus(self) -> tuple[str, ...]:
        return GPUS

    def is_active(self, unit: str) -> bool:
        return unit in self.active

    def stop(self, unit: str) -> AnyReply:
        return self._do(f"stop {unit}")

    def start(self, unit: str) -> AnyReply:
        return self._do(f"start {unit}")

    def users(self) -> tuple[str, ...] | None:
        return self.people

    def inhibitors(self) -> tuple[str, ...] | None:
        return self.inhibiting

    def collect(self, order: str, limit_s: float) -> AnyReply:
        return self._do(f"collect {order}")

    def report(self, order: str, offset: int) -> AnyReply:
        return Piece(piece=f"report of {order}".encode()[offset:], total=len(f"report of {order}"))

    def reset(self, gpus: tuple[str, ...]) -> AnyReply:
        return self._do(f"reset {' '.join(gpus)}")

    def reboot(self) -> AnyReply:
        return self._do("reboot")


def holder(pid: int = 100, name: str = "python3", gpu: str = GPUS[0], unit: str | None = None) -> Holder:
    return Holder(pid=pid, name=name, gpus=(gpu,), unit=unit)
