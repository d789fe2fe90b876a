"""Agent, root helper and replicas as packaged, under a real systemd: who runs as whom, may open what, outlives whom.

The GPUs are made up (``tests/fakes/nvml``): the agent reads them through the driver's own Python, the root helper finds
them in a /proc/driver that is put there. Their device nodes are real, with no driver behind: to open one gives ENXIO
where it is allowed and EPERM where the unit's device rules forbid it, so that can be told apart.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.replicas.record import ReplicaRecord
from agent.virtual.state import VirtualState
from tests.e2e.machine import Machine, booted, packaged
from tests.fakes.nvml.fixture import nvml_library
from vocab.messages import Desired, ReplicaSpec
from vocab.observations import Member

__all__ = ["nvml_library"]
pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0
EXPOSURE = 25  # of systemd-analyze security, times ten, as in tests/deploy/test_systemd.py
STATE = "/var/lib/corral/agent"
PYTHON = "/opt/corral/bin/python"
AGENT = f"""
node = "n1"
controller = "http://127.0.0.1:1"
state_dir = "{STATE}"
run_dir = "/run/corral"
replica_manager = "systemd"
nvml_library = "/opt/fake/libnvidia-ml.so.1"
dcgm = "off"
observe_replicas = false
level = "repair"
"""
HELPER = f"""
units = ["site-train@.service"]
[replicas]
models = ["/var/lib/corral/models"]
[replicas.engines.torch]
program = ["{PYTHON}", "-P", "/opt/corral/source/tests/fakes/replica"]
[replicas.engines.command]
commands = [["{PYTHON}", "-c", "print('no weights here'); raise SystemExit(7)"]]
"""
READY = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + '/ready', timeout=5).status)"
ASK = """
import asyncio, sys
from pathlib import Path
from agent.roothelper.client import SocketHelper
from agent.roothelper.requests import request_of
print(asyncio.run(SocketHelper(Path("/run/corral-roothelper.sock")).ask(request_of(sys.argv[1].encode()))))
"""


class Node:
    """The machine with Corral on it. There is no controller: what it last said is in the agent's own file."""

    def __init__(self, machine: Machine, gpus: tuple[str, ...]) -> None:
        self.machine = machine
        self.gpus = gpus
        self._generation = 0

    def desire(self, *replicas: ReplicaSpec) -> None:
        """What an agent that starts anew goes by."""
        self._generation += 1
        desired = Desired(node="n1", epoch=1, generation=self._generation, replicas=replicas)
        self.machine.write(f"{STATE}/desired.json", msgspec.json.encode(desired).decode(), "640")
        self.machine.run("chown", "corral-agent:", f"{STATE}/desired.json")
        done = self.machine.ran("systemctl", "restart", "corral-agent.service")
        assert done.returncode == 0, self.told()

    def spec(self, replica: str, gpu: int, **more: Any) -> ReplicaSpec:
        usual: dict[str, Any] = {"deployment": "chat", "model": "/var/lib/corral/models/m", "token": "1.1",
                                 "drain_s": 20.0, "kill_s": 2.0}  # fmt: skip
        return ReplicaSpec(replica=replica, members=(Member(node="n1", gpu=self.gpus[gpu]),), **(usual | more))

    def record(self, replica: str) -> ReplicaRecord | None:
        return self._read(replica, "record")

    def ended(self, replica: str) -> ReplicaRecord | None:
        return self._read(replica, "ended")

    def _read(self, replica: str, name: str) -> ReplicaRecord | None:
        text = self.machine.read(f"/run/corral/replicas/{replica}/{name}.json")
        return None if text is None else msgspec.json.decode(text, type=ReplicaRecord)

    def is_ready(self, replica: str) -> ReplicaRecord | None:
        record = self.record(replica)
        if record is None or not self.machine.ran(PYTHON, "-c", READY, record.url).stdout.startswith("200"):
            return None
        return record

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Poll until it is true; its value. Fails with what the machine has written."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never happened: {what}\n{self.told()}")

    def told(self) -> str:
        """The end of the journal."""
        return self.machine.run("journalctl", "--no-pager", "--output=short-monotonic", "--lines=60")

    def agent_pid(self) -> str:
        return self.machine.show("corral-agent.service", "MainPID")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, nvml_library: Path) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("systemd")
    tree = folder / "tree"
    packaged(tree)
    (tree / "opt/fake").mkdir()
    shutil.copy(nvml_library, tree / "opt/fake")
    (tree / "etc/corral").mkdir()
    (tree / "etc/corral/agent.toml").write_text(AGENT)
    (tree / "etc/corral/roothelper.toml").write_text(HELPER)
    (tree / "etc/corral/roothelper.toml").chmod(0o600)
    (tree / "etc/corral/token").write_text("secret\n")
    for unit, line in {
        "agent": f"Environment=CORRAL_FAKE_NVML_STATE={STATE}/virtual.state",
        "roothelper": "BindReadOnlyPaths=/opt/fake/driver:/proc/driver",
    }.items():
        drop_in = tree / f"etc/systemd/system/corral-{unit}.service.d"
        drop_in.mkdir()
        (drop_in / "fake.conf").write_text(f"[Service]\n{line}\n")
    (tree / "var/lib/corral/agent").mkdir(parents=True)
    state = VirtualState.create(tree / "var/lib/corral/agent/virtual.state", "n1", "8xH100")
    gpus = tuple(gpu.uuid.decode() for gpu in state.gpus)
    state.close()
    for minor, uuid in enumerate(gpus):
        place = tree / f"opt/fake/driver/nvidia/gpus/0000:{minor:02x}:00.0"
        place.mkdir(parents=True)
        (place / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
    with booted(tree) as machine:
        _furnish(machine, gpus)
        made = Node(machine, gpus)
        made.desire()
        yield made


def _furnish(machine: Machine, gpus: tuple[str, ...]) -> None:
    """What a driver would have made, and the steps of docs/install.md."""
    for minor in range(len(gpus)):
        machine.run("mknod", "-m", "666", f"/dev/nvidia{minor}", "c", "195", str(minor))
    for name, numbers in {"nvidiactl": "195 255", "nvidia-uvm": "511 0", "nvidia-uvm-tools": "511 1"}.items():
        machine.run("mknod", "-m", "666", f"/dev/{name}", "c", *numbers.split())
    machine.run("systemd-sysusers")
    machine.run("systemd-tmpfiles", "--create", "corral.conf")
    machine.run("chgrp", "-R", "corral", "/etc/corral")
    machine.run("chmod", "640", "/etc/corral/agent.toml", "/etc/corral/token")
    machine.run("chown", "-R", "corral-agent:", STATE)
    machine.run("systemctl", "start", "corral-roothelper.socket")


def as_engine(machine: Machine, *words: str) -> "tuple[int, str]":
    """A program as the replicas' user, in no unit."""
    done = machine.ran("setpriv", "--reuid=corral-engine", "--regid=corral-engine", "--clear-groups", *words)
    return done.returncode, done.stdout + done.stderr


def opened(machine: Machine, unit: str, device: str) -> str:
    """What the kernel says to who opens a device within a unit's cgroup, as root with all rights: the cgroup's word."""
    script = 'echo $$ > "/sys/fs/cgroup$1/cgroup.procs" && exec cat "$2"'
    return machine.ran("sh", "-c", script, "sh", machine.show(unit, "ControlGroup"), device).stderr.strip()


def test_a_replica_is_a_unit_with_its_own_user_and_devices_that_outlives_its_agent(node):
    machine = node.machine
    node.desire(node.spec("own", 0))
    record = node.until(lambda: node.is_ready("own"), "ready")
    unit = "corral-replica-own.service"
    assert record.unit == unit
    assert int(machine.show(unit, "MainPID")) == record.pid

    # its user and its bounds
    status = machine.read(f"/proc/{record.pid}/status") or ""
    uid = machine.run("id", "-u", "corral-engine").strip()
    assert f"\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    assert "\nCapBnd:\t0000000000000000\n" in status
    assert "\nNoNewPrivs:\t1\n" in status
    assert "\nSeccomp:\t2\n" in status

    # its devices: as the kernel decides
    assert "No such device or address" in opened(machine, unit, "/dev/nvidia0")
    assert "No such device or address" in opened(machine, unit, "/dev/nvidiactl")
    assert "No such device or address" in opened(machine, unit, "/dev/nvidia-uvm")
    for other in range(1, 8):
        assert "Operation not permitted" in opened(machine, unit, f"/dev/nvidia{other}")

    # what it may not: the agent's state, tokens, the helper, the agent itself
    for path in (f"{STATE}/desired.json", "/etc/corral/token", "/run/corral/replicas/own/record.json"):
        assert machine.ran("test", "-e", path).returncode == 0
        code, said = as_engine(machine, "cat", path)
        assert (code, "Permission denied" in said) == (1, True), path
    assert "Permission denied" in as_engine(machine, "ls", "/run/corral/replicas")[1]
    assert "not permitted" in as_engine(machine, "sh", "-c", f"kill -TERM {node.agent_pid()}")[1]

    # whom the helper hears: not the replica, not another process of the agent's user
    ask = (PYTHON, "-c", ASK, '{"verb": "ask"}')
    assert "Unreachable" in as_engine(machine, *ask)[1]
    other = machine.run("setpriv", "--reuid=corral-agent", "--regid=corral-agent", "--init-groups", *ask)
    assert "has no business here" in other
    assert "replicas" in machine.run(*ask)

    # it outlives the agent, however that ends, and is adopted
    before = node.agent_pid()
    machine.run("kill", "-KILL", before)
    node.until(lambda: node.agent_pid() not in {before, "0"}, "systemd starts the agent again")
    adopted = f"replica adopted replica=own pid={record.pid}"
    node.until(lambda: adopted in machine.journal("corral-agent.service"), "adopted")
    node.desire(node.spec("own", 0))
    after = node.until(lambda: node.is_ready("own"), "ready under the next agent")
    assert (after.pid, after.start_s, after.attempt) == (record.pid, record.start_s, 1)

    # it is drained by its order
    node.desire(node.spec("own", 0, phase="drain"))
    ended = node.until(lambda: node.ended("own"), "drained")
    assert (ended.exit.code, ended.exit.reason) == (0, "drained")
    node.desire()
    node.until(lambda: machine.show(unit, "LoadState") == "not-found", "its unit is forgotten")


def test_one_that_is_killed_is_seen_and_started_again(node):
    node.desire(node.spec("again", 1))
    first = node.until(lambda: node.is_ready("again"), "ready")
    node.machine.run("kill", "-KILL", str(first.pid))
    second = node.until(lambda: (found := node.is_ready("again")) and found.attempt == 2 and found, "started again")
    assert second.pid != first.pid
    journal = node.machine.journal("corral-agent.service")
    assert "replica ended" in journal
    assert "signal=9" in journal


def test_one_that_does_not_heed_sigterm_is_killed_with_all_that_it_started(node):
    node.desire(node.spec("deaf", 2, drain_s=0.5, kill_s=0.5))
    record = node.until(lambda: node.is_ready("deaf"), "ready")
    node.machine.run("kill", "-STOP", str(record.pid))
    node.desire(node.spec("deaf", 2, phase="stop", drain_s=0.5, kill_s=0.5))
    ended = node.until(lambda: node.ended("deaf"), "killed")
    assert (ended.exit.signal, ended.exit.reason) == (9, "killed")
    assert node.machine.ran("test", "-e", f"/proc/{record.pid}").returncode != 0


def test_an_engine_that_ends_at_once_has_its_code_and_its_last_words_from_the_journal(node):
    words = msgspec.toml.decode(HELPER)["replicas"]["engines"]["command"]["commands"][0]
    node.desire(node.spec("broken", 3, engine="command", options={"command": words}))
    ended = node.until(lambda: node.ended("broken"), "ended")
    assert (ended.exit.code, ended.exit.reason, ended.exit.text) == (7, "crashed", "no weights here")


def test_what_root_has_not_allowed_is_refused_by_the_helper_and_told(node):
    for name, more in {
        "shell": {"engine": "command", "options": {"command": ["/bin/sh", "-c", "id"]}},
        "place": {"model": "/etc"},
    }.items():
        node.desire(node.spec(name, 4, **more))
        ended = node.until(lambda name=name: node.ended(name), "refused")
        assert ended.exit.reason == "cannot start"
        assert node.machine.show(f"corral-replica-{name}.service", "LoadState") == "not-found"


def test_a_unit_that_no_agent_remembers_is_ended_before_its_name_is_started_anew(node):
    """As one is left by an agent that was killed while its start was under way."""
    node.desire(node.spec("orphan", 3))
    record = node.until(lambda: node.is_ready("orphan"), "ready")
    node.machine.run("systemctl", "stop", "corral-agent.service")
    node.machine.run("rm", "-r", "/run/corral/replicas/orphan")
    node.desire(node.spec("orphan", 3))
    again = node.until(lambda: (found := node.is_ready("orphan")) and found.pid != record.pid and found, "anew")
    assert int(node.machine.show("corral-replica-orphan.service", "MainPID")) == again.pid


def test_two_replicas_on_one_node_have_each_their_own_gpus(node):
    node.desire(node.spec("left", 5), node.spec("right", 6))
    for name, mine, other in (("left", 5, 6), ("right", 6, 5)):
        node.until(lambda name=name: node.is_ready(name), f"{name} ready")
        assert "No such device" in opened(node.machine, f"corral-replica-{name}.service", f"/dev/nvidia{mine}")
        assert "not permitted" in opened(node.machine, f"corral-replica-{name}.service", f"/dev/nvidia{other}")


def test_an_operators_drop_in_bounds_all_replicas(node):
    folder = "/etc/systemd/system/corral-replica-.service.d"
    node.machine.run("mkdir", "-p", folder)
    node.machine.write(f"{folder}/memory.conf", "[Service]\nMemoryMax=16G\n")
    node.machine.run("systemctl", "daemon-reload")
    node.desire(node.spec("bound", 7))
    node.until(lambda: node.is_ready("bound"), "ready")
    assert node.machine.show("corral-replica-bound.service", "MemoryMax") == str(16 * 2**30)
    assert node.machine.show("corral-replica-bound.service", "DevicePolicy") == "closed"


def test_a_replicas_unit_is_as_closed_as_one_that_is_started_by_hand(node):
    node.desire(node.spec("closed", 4))
    node.until(lambda: node.is_ready("closed"), "ready")
    analysed = node.machine.ran(
        "systemd-analyze", "security", "--no-pager", f"--threshold={EXPOSURE}", "corral-replica-closed.service"
    )
    assert analysed.returncode == 0, analysed.stdout[-400:]


SITE = f"""
[Service]
ExecStart={PYTHON} /opt/fake/train.py {STATE}/virtual.state %i
TimeoutStopSec=20
Restart=always
"""
TRAIN = """
import os, signal, sys
from pathlib import Path
from agent.virtual.state import VirtualState
gpu = VirtualState.open(Path(sys.argv[1])).gpus[int(sys.argv[2])]
def leave(*_):
    gpu.process_count = 0
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
gpu.processes[0].pid, gpu.processes[0].used_bytes = os.getpid(), 2**30
gpu.process_count = 1
while True:
    signal.pause()
"""
WEAR = """
import sys
from pathlib import Path
from agent.virtual.state import VirtualState
VirtualState.open(Path(sys.argv[1])).gpus[int(sys.argv[2])].remap_failed = int(sys.argv[3])
"""
CALL = """
import sys, urllib.request as u
body = sys.argv[3].encode() if len(sys.argv) > 3 else None
head = {"Content-Type": "application/json"}
asked = u.Request("http://127.0.0.1:7400/api/v1/" + sys.argv[2], body, head, method=sys.argv[1])
print(u.urlopen(asked, timeout=5).read().decode())
"""


def call(machine: Machine, *words: str) -> Any:
    """The controller's answer; None while it gives none."""
    done = machine.ran(PYTHON, "-c", CALL, *words)
    return msgspec.json.decode(done.stdout) if done.returncode == 0 else None


@pytest.fixture
def site(node: Node) -> Iterator[Node]:
    """The node with a controller of its own, a unit of the site on its last GPU, and the vendor's tool."""
    machine = node.machine
    node.desire()
    machine.write("/opt/fake/train.py", TRAIN)
    machine.write("/etc/systemd/system/site-train@.service", SITE)
    machine.write("/usr/bin/nvidia-bug-report.sh", '#!/bin/sh\necho "report of $(id -un)" > "$2.gz"\n', "755")
    machine.write("/run/controller.toml", 'listen = "127.0.0.1:7400"\nstate_dir = "/run/controller"\n')
    changed = AGENT.replace("127.0.0.1:1", "127.0.0.1:7400").replace("observe_replicas = false", "")
    machine.write("/etc/corral/agent.toml", changed, "640")
    machine.run("systemctl", "daemon-reload")
    controller = ("-m", "controller", "--config", "/run/controller.toml")
    machine.run("systemd-run", "--quiet", "--unit=site-controller", PYTHON, *controller)
    machine.run("systemctl", "start", "site-train@7.service")
    machine.run("systemctl", "restart", "corral-agent.service")
    yield node
    machine.run("systemctl", "stop", "site-train@7.service", "site-controller.service")
    machine.write("/etc/corral/agent.toml", AGENT, "640")
    node.desire()


def test_a_unit_of_the_site_is_stopped_for_a_fault_of_its_gpu_and_started_again_after_its_release(site):
    machine, unit, gpu = site.machine, "site-train@7.service", site.gpus[7]

    def seen() -> bool:
        return unit + "@n1" in {each["replica"] for each in call(machine, "GET", "replicas") or ()}

    def is_active(word: str) -> Callable[[], bool]:
        return lambda: machine.show(unit, "ActiveState") == word

    site.until(seen, "its work is observed")
    first = machine.show(unit, "InvocationID")
    machine.run(PYTHON, "-c", WEAR, f"{STATE}/virtual.state", "7", "1")
    site.until(is_active("inactive"), "systemd has stopped it")
    assert machine.show(unit, "NRestarts") == "0"

    # nothing else was in the way: the GPU is for the vendor, with what root's tool says of it
    bundles = site.until(lambda: call(machine, "GET", "bundles"), "a bundle of its quarantine")
    assert (bundles[0]["subject"], bundles[0]["waits_for"]) == (gpu, [])
    reports = machine.run("sh", "-c", f"cat {STATE}/evidence/*/nvidia-bug-report.log.gz")
    assert reports == "report of root\n"

    machine.run("kill", "-KILL", site.agent_pid())  # what was stopped is on its disk
    machine.run(PYTHON, "-c", WEAR, f"{STATE}/virtual.state", "7", "0")
    order = msgspec.json.encode({"subject": {"gpu": gpu}, "reason": "replaced"}).decode()
    site.until(lambda: call(machine, "POST", "releases", order), "released")
    site.until(is_active("active"), "systemd has started it again")
    assert machine.show(unit, "InvocationID") != first
    site.until(seen, "its work is observed again")
    assert machine.journal("corral-roothelper.service").count("start_unit unit=site-train@7.service") == 1
