"""``python -m agent.roothelper [--config FILE]``, started by systemd for its socket; ``--virtual FILE --socket PATH``
serves a virtual node as the user who starts it."""

import argparse
import os
import pwd
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.roothelper import config as configuration
from agent.roothelper.config import HelperConfig
from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.machine import Machine
from agent.roothelper.replicas import ReplicaDuty
from agent.roothelper.server import serve
from agent.roothelper.site import SiteDuty, SystemdUnits
from agent.roothelper.systemd import Systemd
from vocab.clock import SystemClock
from vocab.errors import ConfigError, CorralError
from wire import logs

PROGRAM = "corral-roothelper"
FIRST_PASSED = 3  # sd_listen_fds(3): the first descriptor that systemd hands over
VIRTUAL_IDLE_S = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; the exit code: 0 after a while without callers, 2 if it cannot serve."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Does for the Corral agent the few things that need root."
    )
    parser.add_argument("--config", type=Path, default=Path("/etc/corral/roothelper.toml"))
    parser.add_argument("--virtual", type=Path, help="the state file of a virtual node")
    parser.add_argument("--socket", type=Path, help="with --virtual: where to listen")
    parser.add_argument("--pause-file", type=Path, help="with --virtual: what stops harmful verbs")
    chosen = parser.parse_args(arguments)
    os.umask(0o077)
    logs.set_up()
    try:
        if chosen.virtual is not None:
            _serve_virtual(chosen.virtual, chosen.socket, chosen.pause_file)
        else:
            _serve_real(configuration.read(chosen.config))
    except CorralError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return error.exit_code
    return 0


def _serve_real(config: HelperConfig) -> None:
    from agent.roothelper.real import RealMachine

    config.state_dir.mkdir(parents=True, exist_ok=True)
    machine, user = RealMachine(config.state_dir / "evidence"), _uid(config.user)

    def heard(pid: int, uid: int) -> bool:
        if uid == 0 or uid != user:
            return uid == 0
        return not config.agent_unit or pid == machine.main_pid(config.agent_unit)

    with passed_socket() as door:
        serve(door, heard, _duty(machine, config).perform, config.idle_s)


def _serve_virtual(state: Path, place: Path | None, pause_file: Path | None) -> None:
    from agent.roothelper.virtual import SERVICES, VirtualMachine

    if place is None or pause_file is None:
        raise ConfigError("--virtual: say with --socket and --pause-file where to listen and what stops it")
    config = HelperConfig(services=SERVICES, state_dir=state.parent, pause_file=pause_file, idle_s=VIRTUAL_IDLE_S)
    machine = VirtualMachine(state)
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(place))
        door.listen()
        serve(door, lambda _, uid: uid == os.getuid(), _duty(machine, config).perform, config.idle_s)


def _duty(machine: Machine, config: HelperConfig) -> Duty:
    ledger, clock = Ledger(config.state_dir / "roothelper.limits.json"), SystemClock()
    replicas = ReplicaDuty(Systemd(), config.replicas, ledger, clock) if config.replicas is not None else None
    site = SiteDuty(SystemdUnits(), config.units, ledger, clock)
    return Duty(machine, config.services, config.pause_file, ledger, clock, replicas, site)


def passed_socket() -> socket.socket:
    """The listening socket from systemd. Raises ConfigError if there is none."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        raise ConfigError("no socket was handed over: start corral-roothelper.socket, not this program")
    return socket.socket(fileno=FIRST_PASSED)


def _uid(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise ConfigError(f"user: there is no user {user!r} on this machine") from error


if __name__ == "__main__":
    sys.exit(main())
