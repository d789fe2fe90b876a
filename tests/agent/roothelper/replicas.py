"""What root allows in tests of replicas, a start that it allows, and what every unit must be whatever was asked for."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.roothelper.config import EngineConfig, ReplicaConfig
from agent.roothelper.requests import StartReplica
from agent.roothelper.unit import BOUNDS, Unit

ONE = "GPU-11111111-aaaa"
ALLOWED = ReplicaConfig(
    models=("/models", "org/small-model"),
    engines={
        "torch": EngineConfig(program=(sys.executable, "-m", "engine"), options=("max_running",)),
        "vllm": EngineConfig(
            program=(sys.executable,), options=("max_model_len", "enforce_eager"), environment={"HF_HUB_OFFLINE": "1"}
        ),
        "command": EngineConfig(commands=((sys.executable, "--port", "{port}", "$HOME"),)),
    },
    most=3,
)


def start(**changes: Any) -> StartReplica:
    usual: dict[str, Any] = {
        "replica": "chat-1", "deployment": "chat", "engine": "torch", "model": "/models/small", "gpus": (ONE,),
        "port": 7430, "drain_s": 120.0, "kill_s": 10.0,
    }  # fmt: skip
    return StartReplica(**(usual | changes))


def proc_of(folder: Path, gpus: Sequence[str], minors: Sequence[int] = range(64)) -> Path:
    """A /proc in which the driver has these GPUs."""
    for minor, uuid in zip(minors, gpus, strict=False):
        place = folder / f"proc/driver/nvidia/gpus/0000:{minor:02}:00.0"
        place.mkdir(parents=True, exist_ok=True)
        (place / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
    return folder / "proc"


def check_unit(unit: Unit) -> None:
    """No order can have changed the program, the user or a bound, and no word of it is more than one word."""
    assert unit.argv[0] == sys.executable
    assert unit.properties[: len(BOUNDS)] == BOUNDS
    named = [each.partition("=")[0] for each in unit.properties[len(BOUNDS) :]]
    fixed = ["User", "TimeoutStopSec", "ReadWritePaths", "InaccessiblePaths", "SyslogIdentifier"]
    assert named == [*fixed, *["DeviceAllow"] * (len(named) - len(fixed))]
    assert "User=corral-engine" in unit.properties
    words = (unit.name, *unit.properties, *unit.argv, *unit.environment.values())
    assert all(word.isprintable() for word in words), words
