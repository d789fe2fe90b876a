"""What a caller may send to the root helper: a known verb, or refused before anything is done."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.replicas import ReplicaDuty
from agent.roothelper.requests import (
    AnyReply,
    AnyRequest,
    Ask,
    ClearReplica,
    Collect,
    EndReplica,
    ReadReplica,
    Reboot,
    ResetGpus,
    StartService,
    StopService,
    Survey,
    encoded,
    request_of,
)
from tests.agent.roothelper.machine import DCGM, GPUS, SERVICES, FakeMachine
from tests.agent.roothelper.replicas import ALLOWED, check_unit, proc_of, start
from tests.agent.roothelper.units import FakeUnits
from tests.fuzz.mutate import document
from tests.fuzz.target import Target
from vocab.clock import VirtualClock
from vocab.errors import InputError

_KEPT = TemporaryDirectory(prefix="corral-fuzz-")  # until this process ends
FOLDER = Path(_KEPT.name)
DEEDS = {"stop", "start", "collect", "reset", "reboot"}


def one(data: bytes) -> None:
    """A line on its socket."""
    machine = FakeMachine()
    units, ledger, clock = FakeUnits(), Ledger(FOLDER / "none"), VirtualClock(1.0)
    replicas = ReplicaDuty(units, ALLOWED, ledger, clock, proc_of(FOLDER, GPUS))
    duty = Duty(machine, SERVICES, FOLDER / "PAUSE", ledger, clock, replicas)
    try:
        request = request_of(data)
    except InputError:
        return
    assert isinstance(request, get_args(AnyRequest))
    assert request_of(encoded(request)) == request
    assert isinstance(duty.perform(request), get_args(AnyReply))
    for deed in machine.did:
        verb, *words = deed.split()
        assert verb in DEEDS
        assert verb not in {"stop", "start"} or words[0] in SERVICES
    for unit in units.started:
        check_unit(unit)
    (FOLDER / "none").unlink(missing_ok=True)


def seeds() -> Iterator[bytes]:
    """Each verb once."""
    for request in (
        Ask(), Survey(gpus=GPUS), StopService(unit=DCGM), StartService(unit=DCGM),
        Collect(order="a-0123456789abcdef", limit_s=60.0), ResetGpus(gpus=GPUS), Reboot(),
        start(gpus=GPUS), start(engine="vllm", gpus=GPUS, options={"max_model_len": 4096, "enforce_eager": True}),
        EndReplica(replica="chat-1", kill=True), ReadReplica(replica="chat-1"), ClearReplica(replica="chat-1"),
    ):  # fmt: skip
        yield encoded(request)


TARGET = Target(one, seeds, mutate=document)
