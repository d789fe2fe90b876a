"""A fleet that trusts nobody without a certificate: controller, agent, gateway and command line as real processes."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.controller.process import ROOT
from tests.ports import free_ports
from tests.wire.pki import Authority

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
WAIT_S = 40.0


def toml(path: Path, **keys: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in keys.items()))
    return path


@contextmanager
def process(module: str, config: Path) -> Iterator[subprocess.Popen[bytes]]:
    with config.with_suffix(".log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", module, "--config", str(config)], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


class Fleet:
    """The files of one fleet and what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.agent_port, self.gateway_port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        self.ours = Authority(folder / "pki")
        self.cert, self.key = self.ours.give("controller")
        self.person = self.ours.give("ann")
        self.admin = self.secret("admin.token", "an-admin")

    def secret(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def controller(self) -> Path:
        return toml(
            self.folder / "controller.toml",
            listen=f"127.0.0.1:{self.port}",
            state_dir=str(self.folder / "controller"),
            token_file=str(self.admin),
            tls_cert=str(self.cert),
            tls_key=str(self.key),
            tls_ca=str(self.ours.cert),
            tls_client_ca=str(self.ours.cert),
        )

    def agent(self, node: str, token: Path, certificate: tuple[Path, Path], port: int) -> Path:
        home = self.folder / node
        return toml(
            home / "agent.toml",
            node=node,
            controller=self.url,
            listen=f"127.0.0.1:{port}",
            virtual="2xH100",
            state_dir=str(home / "state"),
            run_dir=str(home / "run"),
            pause_file=str(home / "PAUSE"),
            observe_replicas=False,
            controller_token_file=str(token),
            tls_cert=str(certificate[0]),
            tls_key=str(certificate[1]),
            tls_ca=str(self.ours.cert),
        )

    def gateway(self, token: Path, certificate: tuple[Path, Path]) -> Path:
        return toml(
            self.folder / "gateway.toml",
            node=NODE,
            controller=self.url,
            listen=f"127.0.0.1:{self.gateway_port}",
            state_dir=str(self.folder / "gateway"),
            controller_token_file=str(token),
            tls_cert=str(certificate[0]),
            tls_key=str(certificate[1]),
            tls_ca=str(self.ours.cert),
        )

    def corral(
        self, *words: object, certificate: tuple[Path, Path] | None = None, trust: bool = True
    ) -> subprocess.CompletedProcess[str]:
        cert, key = certificate or self.person
        environment = {
            **os.environ,
            "CORRAL_URL": self.url,
            "CORRAL_TOKEN_FILE": str(self.admin),
            "CORRAL_TLS_CERT": str(cert),
            "CORRAL_TLS_KEY": str(key),
            **({"CORRAL_TLS_CA": str(self.ours.cert)} if trust else {}),
        }
        command = [sys.executable, "-m", "corral", *map(str, words)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=60)

    def ask(self, path: str) -> Any:
        done = self.corral("status", "--json")
        return msgspec.json.decode(done.stdout)[path] if done.returncode < 2 else None

    def shown(self) -> bytes | None:
        """The certificate that the controller shows to new connections."""
        context = ssl.create_default_context(cafile=self.ours.cert)
        context.load_cert_chain(*self.person)
        with (
            socket.create_connection(("127.0.0.1", self.port)) as door,
            context.wrap_socket(door, server_hostname="127.0.0.1") as secured,
        ):
            return secured.getpeercert(binary_form=True)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_nodes_enroll_and_report_over_certificates_of_their_own(fleet: Fleet) -> None:
    mine, other = fleet.ours.give(NODE), fleet.ours.give("gpu-2")
    once, own = fleet.folder / "once", fleet.folder / "node.token"
    with ExitStack() as stack:
        controller = stack.enter_context(process("controller", fleet.controller()))
        until(lambda: fleet.corral("token", "list").returncode == 0, "the controller answers")

        done = fleet.corral("status", trust=False)
        assert (done.returncode, "CORRAL_TLS_CA" in done.stderr) == (3, True), done.stderr
        assert fleet.corral("token", "create", "--role", "enroll", "--node", NODE, "--out", once).returncode == 0
        done = fleet.corral("enroll", "--node", NODE, "--token-file", once, "--out", own, certificate=other)
        assert (done.returncode, "certificate names" in done.stderr) == (4, True), done.stderr
        done = fleet.corral("enroll", "--node", NODE, "--token-file", once, "--out", own, certificate=mine)
        assert done.returncode == 0, done.stderr
        assert own.stat().st_mode & 0o777 == 0o600
        assert not once.exists()

        stack.enter_context(process("agent", fleet.agent(NODE, own, mine, fleet.agent_port)))
        stack.enter_context(process("engine.gateway", fleet.gateway(own, mine)))
        until(lambda: [node["node"] for node in fleet.ask("nodes")] == [NODE], "the node reports")
        until(lambda: _ready(fleet, fleet.gateway_port), "the gateway has its list of replicas")

        # the same token elsewhere: another node, and another certificate
        (thief_port,) = free_ports(1)
        stack.enter_context(process("agent", fleet.agent("gpu-2", own, other, thief_port)))
        until(lambda: "certificate names" in (fleet.folder / "gpu-2" / "agent.log").read_text(), "it is refused")
        assert [node["node"] for node in fleet.ask("nodes")] == [NODE]

        before = fleet.shown()
        fresh = fleet.ours.give("controller", stem="fresh")
        fleet.key.write_bytes(fresh[1].read_bytes())
        fleet.cert.write_bytes(fresh[0].read_bytes())
        controller.send_signal(signal.SIGHUP)
        until(lambda: fleet.shown() != before, "the new certificate is shown")
        assert fleet.corral("token", "list").returncode == 0
        assert controller.poll() is None


def _ready(fleet: Fleet, port: int) -> bool:
    context = ssl.create_default_context(cafile=fleet.ours.cert)
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context) as answer:
            return answer.status == 200
    except OSError:
        return False
