"""The agent as an ordinary user with one capability, CAP_SYSLOG: what its unit gives it, and no more."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_ports
from tests.programs import need

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user with a capability"),
]

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
CAP_SYSLOG = 1 << 34
LIMIT_S = 60.0


def as_nobody(*capabilities: str) -> list[str]:
    """The command that makes a process nobody's, with these capabilities alone."""
    setpriv = need("setpriv", "apt-get install util-linux")
    kept = ",".join(f"+{name}" for name in capabilities)
    if kept and subprocess.run([setpriv, f"--inh-caps={kept}", f"--ambient-caps={kept}", "true"]).returncode:
        pytest.skip(f"root itself has no {kept} here")
    user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--no-new-privs"]
    given = [f"--inh-caps=-all,{kept}", f"--ambient-caps={kept}", f"--bounding-set=-all,{kept}"] if kept else []
    return [setpriv, *user, *given, "--"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of nobody; pytest's own folders are closed to him."""
    path = Path(tempfile.mkdtemp(prefix="corral-unprivileged-"))
    os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def python() -> str:
    """A Python that nobody, too, can start, with all that the agent imports."""
    same = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/local/bin:/usr/bin")
    for candidate in filter(None, (sys.executable, same)):
        # The shell stands between, so that it is nobody who starts Python and not the root before him.
        asked = [*as_nobody(), "sh", "-c", 'exec "$0" -c "import agent.__main__"', candidate]
        if subprocess.run(asked, cwd=ROOT, env=environment(), capture_output=True).returncode == 0:
            return candidate
    pytest.skip(f"{ROOT} or its Python is closed to other users: nobody cannot start an agent from there")


def environment() -> dict[str, str]:
    """With what this Python has installed, for whichever Python it is."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))}


def configured(folder: Path, port: int) -> Path:
    for name in ("state", "run"):
        (folder / name).mkdir()
        os.chown(folder / name, NOBODY, NOBODY)
    path = folder / "agent.toml"
    path.write_text(
        f'node = "n1"\nlisten = "127.0.0.1:{port}"\ncontroller = "http://127.0.0.1:{free_ports(1)[0]}"\n'
        f'state_dir = "{folder}/state"\nrun_dir = "{folder}/run"\nkernel_log = "kmsg"\n'
        f'nvml_library = "{folder}/none.so"\ndcgm = "off"\n'
    )
    return path


@pytest.fixture
def agent(folder: Path, python: str, request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """A running agent: its pid and port."""
    (port,) = free_ports(1)
    command = [*as_nobody(*request.param), python, "-m", "agent", "--config", str(configured(folder, port))]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=log)
    try:
        yield process.pid, port
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()


def sources(port: int, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """The sources of the agent by name, once these have spoken."""
    until = time.monotonic() + LIMIT_S
    found: dict[str, dict[str, Any]] = {}
    while time.monotonic() < until and not wanted <= found.keys():
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/node", timeout=5) as answer:
            found = {one["source"]: one for one in json.load(answer)["sources"]}
        time.sleep(0.1)
    assert wanted <= found.keys(), found
    return found


def rights(pid: int) -> tuple[int, int]:
    """Its effective user, and its effective capabilities."""
    status = Path(f"/proc/{pid}/status").read_text()
    user = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.MULTILINE)
    capabilities = re.search(r"^CapEff:\s+(\w+)", status, re.MULTILINE)
    assert user is not None
    assert capabilities is not None
    return int(user[1]), int(capabilities[1], 16)


def children(pid: int) -> list[int]:
    return [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]


@pytest.mark.parametrize("agent", [("syslog",)], indirect=True)
def test_with_that_one_capability_it_reads_the_kernel_log_and_the_host(agent: tuple[int, int]) -> None:
    pid, port = agent
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("this machine has no /dev/kmsg that root may read")
    found = sources(port, {"kernel", "host", "nvml"})
    assert found["kernel"]["state"] == "up", found["kernel"]
    assert found["host"]["state"] == "up", found["host"]
    assert (found["nvml"]["error"] or "").startswith("LIBRARY_NOT_FOUND")
    assert rights(pid) == (NOBODY, CAP_SYSLOG)
    assert {rights(child) for child in children(pid)} == {(NOBODY, 0)}, "what it starts inherits no capability"


@pytest.mark.parametrize("agent", [()], indirect=True)
def test_without_it_the_kernel_log_is_down_and_says_what_to_do(agent: tuple[int, int]) -> None:
    if Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() != "1":
        pytest.skip("kernel.dmesg_restrict is 0 here: everybody may read the log")
    found = sources(agent[1], {"kernel", "host"})
    assert found["kernel"]["state"] == "down"
    assert "CAP_SYSLOG" in found["kernel"]["error"]
    assert found["host"]["state"] == "up"
