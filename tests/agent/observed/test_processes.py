import os
import shutil
import socket
import subprocess
import sys

import pytest

from agent.observed.processes import Address, Processes
from tests.agent.observed.tree import Tree
from tests.programs import lacking, need


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def processes(tree):
    return Processes(tree.root)


def test_a_process_is_known_by_pid_start_and_kin(tree, processes):
    tree.add(10, "vllm", parent=7, session=7, uid=1001, start=42)
    seen = processes.look(10)
    assert (seen.pid, seen.start_s, seen.parent, seen.session, seen.uid) == (10, 42.0, 7, 7, 1001)


def test_what_has_ended_is_not_there(tree, processes):
    tree.add(10)
    tree.end(10)
    assert processes.look(10) is None
    assert processes.look(11) is None
    assert processes.listens(11) == ()
    assert processes.command(11) == ()
    assert processes.variable(11, "HOSTNAME") is None


def test_the_lineage_ends_with_the_session(tree, processes):
    tree.add(5, "sshd")
    tree.add(10, "vllm", parent=5)
    tree.add(11, "core", parent=10, session=10)
    tree.add(12, "worker", parent=11, session=10)
    assert [each.pid for each in processes.lineage(12, {})] == [12, 11, 10]


def test_the_first_process_of_the_machine_is_never_in_a_lineage(tree, processes):
    tree.add(1, "init", parent=0, session=1)
    tree.add(10, "worker", parent=1, session=1)
    assert [each.pid for each in processes.lineage(10, {})] == [10]


def test_only_its_own_listening_sockets_count(tree, processes):
    tree.add(10)
    tree.listen(10, 8000)
    tree.listen(10, 9000, state="01")  # a connection
    tree.listen(10, 8001, host="0100007F")
    tree.listen(10, 8002, host="00000000000000000000000001000000")
    other = tree.root / "10" / "net" / "tcp"
    other.write_text(other.read_text() + "   1: 00000000:0016 00000000:0000 0A 0:0 0:0 0 0 0 777 1 0\n")
    assert processes.listens(10) == (Address("0.0.0.0", 8000), Address("127.0.0.1", 8001), Address("::1", 8002))


SERVES = """
import socket, time
door = socket.socket()
door.bind(("127.0.0.1", 0))
door.listen()
print(door.getsockname()[1], flush=True)
time.sleep(60)
"""
BLIND = """
from agent.observed.processes import Processes
processes = Processes()
process = processes.look({pid})
print(process.uid, processes.listens({pid}), *(processes.url({pid}, at) for at in processes.heard_at(process, {port})))
"""
NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_without_any_right_another_users_ports_are_unknown_but_for_the_one_that_is_named():
    setpriv = need("setpriv", "apt-get install util-linux")
    python = shutil.which("python3", path="/usr/bin:/bin")  # that user may not read this environment
    python = python or lacking("python3 is not installed; run: apt-get install python3")
    without = [setpriv, "--bounding-set", "-all", "--inh-caps", "-all", sys.executable, "-c"]
    with subprocess.Popen([python, "-c", SERVES], user=NOBODY, stdout=subprocess.PIPE, text=True) as theirs:
        try:
            port = int(theirs.stdout.readline())
            code = BLIND.format(pid=theirs.pid, port=port)
            told = subprocess.run([*without, code], capture_output=True, text=True, check=True)
        finally:
            theirs.kill()
    assert told.stdout.split() == [str(NOBODY), "None", f"http://127.0.0.1:{port}"]


def urls(tree, processes, pid, *hosts):
    for place, host in enumerate(hosts):
        tree.listen(pid, 8000 + place, host=host)
    return [processes.url(pid, address) for address in processes.listens(pid)]


def test_a_port_of_our_own_network_is_asked_on_the_loopback(tree, processes):
    tree.add(10)
    hosts = ("00000000", "0" * 32, "0" * 24 + "01000000", "070200C0")
    assert urls(tree, processes, 10, *hosts) == [
        "http://127.0.0.1:8000", "http://127.0.0.1:8001", "http://[::1]:8002", "http://192.0.2.7:8003",
    ]  # fmt: skip


def test_a_port_of_a_containers_network_is_asked_on_the_containers_address_never_on_ours(tree, processes):
    tree.add(10, net="a container's")
    (tree.root / "10" / "net" / "fib_trie").write_text(
        "Main:\n  |-- 127.0.0.1\n     /32 host LOCAL\n  |-- 172.17.0.2\n     /32 host LOCAL\n"
        "  |-- 172.17.0.0\n     /16 link UNICAST\n"
    )
    assert urls(tree, processes, 10, "00000000", "0100007F") == ["http://172.17.0.2:8000", None]


def test_a_network_of_which_nothing_is_known_is_not_taken_for_ours(tree, processes):
    tree.add(10, net="a container's")
    assert urls(tree, processes, 10, "00000000") == [None]


def test_a_port_that_is_named_is_known_by_the_user_of_its_socket(tree, processes):
    tree.add(10, uid=1000)
    tree.listen(10, 8000)
    tree.listen(10, 8001, uid=33)
    process = processes.look(10)
    assert processes.heard_at(process, 8000) == (Address("0.0.0.0", 8000),)
    assert processes.heard_at(process, 8001) == ()
    assert processes.heard_at(process, 8002) == ()


def test_this_very_process_is_read_from_the_real_table():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        real = Processes()
        address = Address("127.0.0.1", door.getsockname()[1])
        assert address in real.listens(os.getpid())
        assert real.url(os.getpid(), address) == f"http://127.0.0.1:{address.port}"
        assert real.look(os.getpid()).uid == os.getuid()
