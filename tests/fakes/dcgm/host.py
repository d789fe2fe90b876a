"""A host engine small enough to read: it listens, keeps sessions with their groups and watches, and can misbehave.

One line of JSON a request, ``[session, call, arguments]``, and one a reply, ``[status, value]``; the other end
is client.py under the two modules that stand in for the bindings. A test turns its switches from the same
process: ``status`` and ``values`` of a GPU, ``held`` (another tool has the performance counters), ``unknown``
fields, calls that ``fail`` or ``hang``, values that ``stand`` still. ``stop`` and ``start`` are its end and return.
"""

import json
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.dcgm import board

OK, LOST = 1, 4
BADPARAM, UNKNOWN_FIELD, NO_DATA, NOT_WATCHED, GPU_IS_LOST = -1, -13, -14, -16, -18
VER_MISMATCH, DUPLICATE_KEY, PROFILING_LIBRARY_ERROR, NVVS_BINARY_NOT_FOUND = -12, -26, -37, -52
BLANK_INT, BLANK_DOUBLE, BLANK_TEXT = 0x7FFFFFFFFFFFFFF0, 140737488355328.0, "<<<NULL>>>"
FAIL = 20
DBE, XID = 0x1, 0x40


class Refuses(Exception):
    """A call that ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Gpu:
    """One GPU: its values by field, its status, the incidents that its health watches have."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = OK
        self.values: dict[int, Any] = {**board.VALUES, **dict(board.texts(number))}
        self.values |= dict.fromkeys(board.NOT_SUPPORTED, BLANK_INT + 2)
        self.stamps: dict[int, float] = {}  # of injected values and events
        self.incidents: list[tuple[int, int, int]] = []  # system, health, code
        self.policy = 0


class Session:
    """What one client has made; it ends with it."""

    def __init__(self) -> None:
        self.groups: dict[int, list[int]] = {}
        self.fields: dict[int, tuple[str, list[int]]] = {}
        self.watched: dict[int, set[int]] = {}  # field group -> GPUs
        self.health: set[int] = set()  # groups whose watches are on
        self.checked: set[int] = set()
        self.fresh: set[tuple[int, int]] = set()  # (GPU, counter) that has one sample only
        self.listens = 0
        self.events: list[list[int]] = []


class FakeHost:
    """The engine. ``major`` 3 or 4; ``socket_path`` makes it listen on a unix socket instead of a port."""

    def __init__(self, version: str = "4.6.0", socket_path: Path | None = None) -> None:
        self.version = version
        self.gpus = [Gpu(number) for number in range(board.GPUS)]
        self.held = False
        self.unknown: set[int] = set()
        self.fail: dict[str, int] = {}
        self.stand_at: float | None = None
        self.diag: list[tuple[str, int, int, int]] | None = None  # test, GPU, result, code; None: no nvvs
        self.calls: Counter[str] = Counter()
        self._hanging: dict[str, threading.Event] = {}
        self._path = socket_path
        self._port = 0
        self._server: socketserver.BaseServer | None = None
        self._sessions: dict[str, Session] = {}
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._next = 1

    @property
    def address(self) -> str:
        return f"unix://{self._path}" if self._path else f"127.0.0.1:{self._port}"

    @property
    def sessions(self) -> list[Session]:
        return list(self._sessions.values())

    # its life

    def start(self) -> None:
        host = self

        class Serve(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                host._open.add(self.connection)
                try:
                    for line in self.rfile:
                        self.wfile.write(json.dumps(host._answer(*json.loads(line))).encode() + b"\n")
                except OSError:
                    pass
                finally:
                    host._open.discard(self.connection)

        kind: Any = socketserver.ThreadingUnixStreamServer if self._path else socketserver.ThreadingTCPServer
        kind = type("Server", (kind,), {"allow_reuse_address": True, "daemon_threads": True, "block_on_close": False})
        if self._path:
            self._path.unlink(missing_ok=True)
        self._server = kind(str(self._path) if self._path else ("127.0.0.1", self._port), Serve)
        if not self._path:
            self._port = self._server.server_address[1]  # type: ignore[index]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """As a killed process: connections break, everything made by clients is forgotten."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self._sessions = {}
        for event in self._hanging.values():
            event.set()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    @contextmanager
    def hang(self, call: str) -> Iterator[None]:
        """This call does not come back within the block."""
        event = self._hanging[call] = threading.Event()
        try:
            yield
        finally:
            self._hanging.pop(call, None)
            event.set()

    # its switches

    def inject(self, number: int, field: int, value: float, at: float | None = None) -> None:
        """A value, with what the engine makes of it."""
        gpu = self.gpus[number]
        gpu.values[field] = value
        gpu.stamps[field] = at or time.time()
        if field == 395:
            gpu.incidents = [incident for incident in gpu.incidents if incident[2] != 80]
            gpu.incidents += [(0x10, FAIL, 80)] if value else []
        if field == board.XID and value == 79:
            gpu.incidents.append((0xFFFFFFFF, FAIL, 120))
        if field == board.XID:
            self._push(gpu, XID, int(value))
        if field == 319 and value:
            self._push(gpu, DBE, int(value))

    def _push(self, gpu: Gpu, condition: int, figure: int) -> None:
        for session in self.sessions:
            if session.listens & gpu.policy & condition:
                session.events.append([condition, gpu.number, figure])

    # its calls

    def _answer(self, token: str, call: str, arguments: list[Any]) -> list[Any]:
        self.calls[call] += 1
        if (event := self._hanging.get(call)) is not None:
            event.wait()
        try:
            if call in self.fail:
                raise Refuses(self.fail[call])
            with self._lock:
                session = self._sessions.setdefault(token, Session())
                return [0, getattr(self, f"_{call}")(session, *arguments)]
        except Refuses as refused:
            return [refused.status, None]

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _connect(self, session: Session, major: int) -> None:
        if int(self.version[0]) != major:
            raise Refuses(VER_MISMATCH)

    def _devices(self, session: Session) -> list[int]:
        return [gpu.number for gpu in self.gpus]

    def _attributes(self, session: Session, number: int) -> dict[str, str]:
        values = self.gpus[number].values
        return {
            "deviceName": values[50],
            "serial": values[53],
            "uuid": values[54],
            "pciBusId": values[57],
            "driverVersion": values[1],
        }

    def _status(self, session: Session, number: int) -> int:
        return self.gpus[number].status

    def _group(self, session: Session, name: str) -> int:
        made = self._number()
        session.groups[made] = []
        return made

    def _add(self, session: Session, group: int, entity: int, number: int) -> None:
        if self.gpus[number].status == LOST:
            raise Refuses(GPU_IS_LOST)
        if entity != 1 or number in session.groups[group]:
            raise Refuses(BADPARAM)
        session.groups[group].append(number)

    def _field_group(self, session: Session, fields: list[int], name: str) -> int:
        if self.unknown & set(fields):
            raise Refuses(BADPARAM if self.version.startswith("3") else UNKNOWN_FIELD)
        if any(name == known for known, _ in session.fields.values()):
            raise Refuses(DUPLICATE_KEY)
        made = self._number()
        session.fields[made] = (name, fields)
        return made

    def _field_group_end(self, session: Session, made: int) -> None:
        session.fields.pop(made)
        session.watched.pop(made, None)

    def _watch(self, session: Session, group: int, made: int, microseconds: int) -> None:
        counters = board.PROFILING.intersection(session.fields[made][1])
        if counters and self.held:
            raise Refuses(PROFILING_LIBRARY_ERROR)
        session.watched[made] = set(session.groups[group])
        session.fresh |= {(number, field) for number in session.groups[group] for field in counters}

    def _unwatch(self, session: Session, group: int, made: int) -> None:
        session.watched.pop(made)

    def _values(self, session: Session, numbers: list[int], fields: list[int], flags: int) -> list[list[Any]]:
        return [self._value(session, number, field, flags) for number in numbers for field in fields]

    def _value(self, session: Session, number: int, field: int, flags: int) -> list[Any]:
        gpu = self.gpus[number]
        kind = "d" if field in board.DOUBLES else "s" if field in board.TEXTS else "i"
        at = gpu.stamps.get(field, self.stand_at or time.time())
        blank = {"d": BLANK_DOUBLE, "s": BLANK_TEXT, "i": BLANK_INT}[kind]
        watched = any(
            number in gpus and field in session.fields[made][1] for made, gpus in list(session.watched.items())
        )
        if field in self.unknown:
            return [number, field, kind, UNKNOWN_FIELD, at, blank]
        if not flags & 1 and not watched:
            return [number, field, kind, NOT_WATCHED, at, blank]
        if gpu.status == LOST:
            return [number, field, kind, 0, at, blank]
        if field == board.XID and field not in gpu.values:
            return [number, field, kind, NO_DATA, 0, blank]
        if (number, field) in session.fresh:
            session.fresh.discard((number, field))
            return [number, field, kind, 0, at, blank]
        if field in board.PROFILING and self.held:
            return [number, field, kind, 0, at, blank]
        return [number, field, kind, 0, at, gpu.values.get(field, blank)]

    def _refresh(self, session: Session) -> None:
        return None

    def _health_set(self, session: Session, group: int, systems: int) -> None:
        session.health.add(group)

    def _health_check(self, session: Session, group: int) -> list[list[int]]:
        if group not in session.checked:
            session.checked.add(group)
            return []
        gpus = [self.gpus[number] for number in session.groups[group] if self.gpus[number].status != LOST]
        return [[gpu.number, *incident] for gpu in gpus for incident in gpu.incidents]

    def _policy_get(self, session: Session, group: int) -> list[int]:
        return [self.gpus[number].policy for number in session.groups[group]]

    def _policy_set(self, session: Session, group: int, condition: int) -> None:
        for number in session.groups[group]:
            self.gpus[number].policy = condition

    def _policy_register(self, session: Session, group: int, condition: int) -> None:
        session.listens |= condition

    def _events(self, session: Session) -> list[list[int]]:
        """What was pushed since the client last asked."""
        events, session.events = session.events, []
        return events

    def _inject(self, session: Session, number: int, field: int, value: float, at: float) -> None:
        self.inject(number, field, value, at)

    def _diag(self, session: Session, group: int, level: int) -> list[tuple[str, int, int, int]]:
        if self.diag is None:
            raise Refuses(NVVS_BINARY_NOT_FOUND)
        return self.diag

    def _stop_diag(self, session: Session) -> None:
        """One that hangs goes on."""
        if (event := self._hanging.get("diag")) is not None:
            event.set()

    def _end(self, session: Session, token: str) -> None:
        self._sessions.pop(token, None)
