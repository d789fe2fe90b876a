"""The units as systemd itself reads them, and what replicas that outlive their agent rest on."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.programs import need

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SYSTEMD = "apt-get install systemd"

# The exposure level of `systemd-analyze security`, times ten: what each unit has today, rounded up. The agent and
# the engine need devices and pages that are written and run; the others need nothing but the network.
EXPOSURE = {
    "corral-agent.service": 28,  # 0.4 of it because adjtimex, which it only reads, could set a clock with CAP_SYS_TIME
    "corral-controller.service": 15,
    "corral-gateway.service": 15,
    "corral-replica@.service": 25,
    "corral-roothelper.service": 26,
}
HELPER = "corral-roothelper.service"
UNPRIVILEGED = sorted(EXPOSURE.keys() - {HELPER})


@pytest.fixture(params=sorted(EXPOSURE))
def unit(request, tmp_path):
    """A unit whose program exists here (verify looks for it)."""
    text = (UNITS / request.param).read_text()
    assert "ExecStart=/opt/corral/bin/python " in text
    path = tmp_path / request.param
    path.write_text(text.replace("/opt/corral/bin/python", need("python3", "apt-get install python3")))
    return path


def test_every_unit_has_a_limit_of_exposure():
    assert {path.name for path in UNITS.glob("*.service")} == set(EXPOSURE)


def test_systemd_finds_nothing_wrong_with_the_unit(unit):
    # An unknown key is only a warning with exit code 0, so anything that verify prints is a failure.
    done = subprocess.run(
        [need("systemd-analyze", SYSTEMD), "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_is_as_closed_as_it_was(unit):
    done = subprocess.run(
        [
            need("systemd-analyze", SYSTEMD),
            "security",
            "--no-pager",
            "--offline=true",
            f"--threshold={EXPOSURE[unit.name]}",
            str(unit),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-400:]


def service(name: str) -> dict[str, list[str]]:
    """The [Service] section; a key that stands twice has two values."""
    found: dict[str, list[str]] = {}
    section = (UNITS / name).read_text().split("[Service]\n")[1].split("\n[")[0]
    for line in section.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_replicas_outlive_their_agent():
    agent = service("corral-agent.service")
    assert agent["KillMode"] == ["process"]
    assert agent["OOMPolicy"] == ["continue"]
    assert agent["RuntimeDirectoryPreserve"] == ["yes"]
    assert agent["RemoveIPC"] == ["no"]
    assert "DynamicUser" not in agent, "it would delete what running replicas hold in /dev/shm and /tmp"


def test_what_replicas_inherit_from_the_agent_lets_them_run():
    agent = service("corral-agent.service")
    assert "MemoryDenyWriteExecute" not in agent, "kernels compiled at run time need such pages"
    assert "MemoryMax" not in agent, "it would count the replicas' memory"
    assert "char-nvidia* rw" in agent["DeviceAllow"]
    assert agent["Environment"] == ["TMPDIR=/run/corral/tmp"], "the private /tmp goes away with the unit"


@pytest.mark.parametrize("name", ["corral-agent.service", "corral-controller.service", "corral-gateway.service"])
def test_a_daemon_notifies_and_is_watched(name):
    keys = service(name)
    assert keys["Type"] == ["notify"]
    assert keys["WatchdogSec"] == ["30s"]
    assert keys["Restart"] == ["always"]


def test_only_the_agent_has_a_capability_and_it_is_to_read_the_kernel_log():
    bounding = {name: service(name)["CapabilityBoundingSet"] for name in UNPRIVILEGED}
    assert bounding.pop("corral-agent.service") == ["CAP_SYSLOG"]
    assert set(map(tuple, bounding.values())) == {("",)}


def test_the_units_users_are_made_and_may_read_the_configuration(tmp_path):
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", str(UNITS / "corral.sysusers.conf"))
    users = {line.split(":")[0] for line in (tmp_path / "etc/passwd").read_text().splitlines()}
    members = {line.split(":")[0]: line.split(":")[3] for line in (tmp_path / "etc/group").read_text().splitlines()}
    needed = {service(name)["User"][0] for name in UNPRIVILEGED}
    assert needed <= users
    assert set(members["corral"].split(",")) == needed


def test_replicas_have_a_user_of_their_own_that_may_read_no_token(tmp_path):
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", str(UNITS / "corral.sysusers.conf"))
    members = {line.split(":")[0]: line.split(":")[3] for line in (tmp_path / "etc/group").read_text().splitlines()}
    assert members["corral-engine"].split(",") == ["corral-agent"], "the agent lends them their beats"
    assert "corral-engine" not in members["corral"].split(",")
    assert service("corral-agent.service")["RuntimeDirectoryMode"] == ["0711"], "through to a beat, and nothing read"


def test_the_configuration_is_shut_to_others(tmp_path):
    rules = (UNITS / "corral.tmpfiles.conf").read_text()
    assert "d /etc/corral            0750 root corral\n" in rules
    mine = tmp_path / "mine.conf"  # owned by whoever runs the test, who need not be root
    mine.write_text(rules.replace(" root corral\n", " - -\n").replace(" root root\n", " - -\n"))
    run("systemd-tmpfiles", "--create", f"--root={tmp_path}", str(mine))
    assert (tmp_path / "etc/corral").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "var/lib/corral/models").is_dir()


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([need(program, SYSTEMD), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_systemd_finds_nothing_wrong_with_the_helpers_socket(tmp_path):
    python = need("python3", "apt-get install python3")
    for name in (HELPER, "corral-roothelper.socket"):
        (tmp_path / name).write_text((UNITS / name).read_text().replace("/opt/corral/bin/python", python))
    run("systemd-analyze", "verify", "--man=no", str(tmp_path / "corral-roothelper.socket"))


def test_the_root_helper_has_no_network_and_one_door():
    helper = service(HELPER)
    assert helper["PrivateNetwork"] == ["yes"]
    assert helper["RestrictAddressFamilies"] == ["AF_UNIX"]
    assert helper["NoNewPrivileges"] == ["yes"]
    assert "CAP_NET_ADMIN" not in helper["CapabilityBoundingSet"][0]
    door = (UNITS / "corral-roothelper.socket").read_text()
    assert "SocketMode=0660\n" in door
    assert "SocketGroup=corral-agent\n" in door


def test_the_agent_looks_for_the_helper_where_the_socket_listens():
    from agent.config import AgentConfig

    default = next(field for field in msgspec.structs.fields(AgentConfig) if field.name == "helper_socket").default
    assert f"ListenStream={default}\n" in (UNITS / "corral-roothelper.socket").read_text()
