"""The helper's socket, with real sockets: who is heard, and what a bad caller can do to it (nothing)."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.roothelper.requests import Able, AnyReply, AnyRequest, Ask, Denied, Reboot, encoded, reply_of
from agent.roothelper.server import answer, peer, serve

NOBODY = 65534
ABLE = Able(verbs=("reset",), services=())


class Desk:
    """Performs nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[AnyRequest] = []

    def perform(self, request: AnyRequest) -> AnyReply:
        self.asked.append(request)
        return ABLE


def ours(pid: int, uid: int) -> bool:
    return (pid, uid) == (os.getpid(), os.getuid())


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def place(tmp_path: Path, desk: Desk) -> Iterator[Path]:
    path = tmp_path / "helper.sock"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        thread = threading.Thread(target=serve, args=(door, ours, desk.perform, 5.0))
        thread.start()
        yield path
        door.settimeout(0.01)
        call(path, b"")  # wakes the server, which then finds that nobody comes
        thread.join()


def call(place: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(10.0)
        caller.connect(str(place))
        caller.sendall(line)
        caller.shutdown(socket.SHUT_WR)
        found = b""
        while piece := caller.recv(4096):
            found += piece
        return found


def test_a_request_is_answered(place, desk):
    assert reply_of(call(place, encoded(Ask()))) == ABLE
    assert desk.asked == [Ask()]


def test_nonsense_is_refused_and_the_next_caller_is_served(place, desk):
    for line in (b"{}\n", b"\xff\xfe\n", b"GET / HTTP/1.1\r\n\r\n", b"[" * 5000 + b"\n", b"x" * 70_000):
        assert isinstance(reply_of(call(place, line)), Denied)
    assert desk.asked == []
    assert reply_of(call(place, encoded(Ask()))) == ABLE


def test_only_the_first_line_counts(place, desk):
    call(place, encoded(Ask()) + encoded(Reboot()))
    assert desk.asked == [Ask()]


def test_a_caller_that_leaves_at_once_disturbs_nobody(place, desk):
    assert call(place, b"") == b""
    assert reply_of(call(place, encoded(Ask()))) == ABLE


def test_a_caller_that_is_stuck_and_a_long_deed_block_nobody(tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    def perform(request: AnyRequest) -> AnyReply:
        if isinstance(request, Reboot):
            inside.set()
            assert go_on.wait(30)
        return ABLE

    place = tmp_path / "helper.sock"
    with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as silent:
        door.bind(str(place))
        door.listen()
        server = threading.Thread(target=serve, args=(door, ours, perform, 0.2))
        server.start()
        silent.connect(str(place))
        long = threading.Thread(target=call, args=(place, encoded(Reboot())))
        long.start()
        assert inside.wait(30)
        assert reply_of(call(place, encoded(Ask()))) == ABLE
        assert server.is_alive()
        go_on.set()
        long.join()
        server.join(30)
        assert not server.is_alive()


def pair_of(uid: int) -> tuple[socket.socket, socket.socket]:
    """Two joined sockets of a process of this user, as far as the kernel tells; only root can be another."""
    if os.getuid() != 0:
        return socket.socketpair(socket.AF_UNIX)
    os.seteuid(uid)
    try:
        return socket.socketpair(socket.AF_UNIX)
    finally:
        os.seteuid(0)


def test_a_stranger_is_turned_away_by_what_the_kernel_says_of_it(desk):
    stranger = os.getuid() or NOBODY
    here, theirs = pair_of(stranger)
    with here, theirs:
        theirs.sendall(encoded(Reboot()))
        answer(here, lambda _, uid: uid != stranger, desk.perform)
        assert isinstance(reply_of(theirs.recv(4096)), Denied)
    assert desk.asked == []


def test_the_kernel_tells_who_calls():
    here, theirs = socket.socketpair(socket.AF_UNIX)
    with here, theirs:
        assert peer(here) == (os.getpid(), os.getuid(), os.getgid())


def test_without_callers_it_ends(tmp_path, desk):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        door.listen()
        serve(door, ours, desk.perform, 0.01)
