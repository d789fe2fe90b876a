"""What ``corral up`` will run: addresses, folders and the configuration file of each process."""

import os
import platform
from pathlib import Path

import msgspec

from vocab.states import Level

VIRTUAL_BOARD = "8xH100"  # the node that stands in where there is no NVIDIA GPU
DRIVER = Path("/proc/driver/nvidia/version")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One fleet on one machine. Replicas listen on the ports from ``base_port + 30``."""

    state: Path
    base_port: int = 7400
    virtual: str | None = VIRTUAL_BOARD
    level: Level = Level.REPAIR
    model: str = "smollm2"
    replica_program: tuple[str, ...] = ()  # the engine, unless another program speaks for it
    log_json: bool = False

    @property
    def run(self) -> Path:
        """The folder of what must not survive a reboot."""
        return self.state / "run"

    @property
    def logs(self) -> Path:
        """The folder of the processes' logs."""
        return self.state / "logs"

    def address(self, offset: int) -> str:
        """``host:port`` of the controller (0), the agent (10) or the gateway (20)."""
        return f"127.0.0.1:{self.base_port + offset}"

    @property
    def controller(self) -> str:
        """The controller's URL."""
        return f"http://{self.address(0)}"

    @property
    def agent(self) -> str:
        """The agent's URL."""
        return f"http://{self.address(10)}"

    @property
    def gateway(self) -> str:
        """The gateway's URL."""
        return f"http://{self.address(20)}"

    @property
    def node(self) -> str:
        """The node's name: this machine's."""
        return platform.node() or "localhost"

    def configs(self) -> dict[str, dict[str, object]]:
        """The configuration of each process, by its name."""
        return {
            "controller": {
                "listen": self.address(0),
                "state_dir": str(self.state / "controller"),
                "log_json": self.log_json,
                "gateways": [self.address(20)],
                "deployments": [
                    self._deployment("chat", replicas=2, gpus=1),
                    self._deployment("pair", replicas=1, gpus=2),
                ],
            },
            "agent": {
                "node": self.node,
                "listen": self.address(10),
                "controller": self.controller,
                "state_dir": str(self.state / "agent"),
                "run_dir": str(self.run),
                "level": self.level.value,
                "replica_base_port": self.base_port + 30,
                "log_json": self.log_json,
                **({"virtual": self.virtual} if self.virtual else {}),
                **({"replica_program": list(self.replica_program)} if self.replica_program else {}),
            },
            "gateway": {
                "listen": self.address(20),
                "controller": self.controller,
                "state_dir": str(self.state / "gateway"),
                "log_json": self.log_json,
            },
        }

    def _deployment(self, name: str, *, replicas: int, gpus: int) -> dict[str, object]:
        return {"name": name, "replicas": replicas, "gpus_per_replica": gpus, "min_ready": 1, "model": self.model}

    def write_configs(self) -> dict[str, Path]:
        """Write each configuration as TOML; the path of each by the process's name."""
        folder = self.state / "config"
        for each in (folder, self.logs, self.run):
            each.mkdir(parents=True, exist_ok=True)
        paths = {name: folder / f"{name}.toml" for name in self.configs()}
        for name, body in self.configs().items():
            paths[name].write_bytes(msgspec.toml.encode(body))
        return paths


def default_state() -> Path:
    """``$XDG_STATE_HOME/corral``, or ``~/.local/state/corral``."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "corral"


def has_gpus() -> bool:
    """Whether an NVIDIA driver is loaded on this machine."""
    return DRIVER.exists()
