"""The functions of ``dcgm_agent`` that the agent's adapter calls, on the small host engine of host.py.

Arguments, results and errors are those of the bindings; a call on a broken connection is -21 at once, and for
ever. Each thread has a connection of its own within one session, so one call that hangs holds up no other.
"""

# ruff: noqa: N802  # the names are those of the bindings

import json
import os
import socket
import threading
import time
from ctypes import pointer
from typing import Any
from uuid import uuid4

from tests.fakes.dcgm import structs

CONNECTION_NOT_VALID = -21
EVENT_S = 0.02


class Session:
    """A handle."""

    def __init__(self, address: str, *, unix: bool, timeout_s: float) -> None:
        self._address, self._unix, self._timeout_s = address, unix, timeout_s
        self._token = uuid4().hex
        self._own = threading.local()
        self._broken = False

    def ask(self, call: str, *arguments: Any) -> Any:
        if self._broken:
            raise structs.DCGMError(CONNECTION_NOT_VALID)
        try:
            file = self._own.__dict__.setdefault("file", None) or self._connect()
            file.write(json.dumps([self._token, call, arguments]).encode() + b"\n")
            file.flush()
            line = file.readline()
        except OSError:
            line = b""
        if not line:
            self._broken = True
            raise structs.DCGMError(CONNECTION_NOT_VALID)
        status, value = json.loads(line)
        if status:
            raise structs.DCGMError(status)
        return value

    def _connect(self) -> Any:
        if self._unix:
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(self._timeout_s)
            made.connect(self._address)
        else:
            host, _, port = self._address.rpartition(":")
            made = socket.create_connection((host, int(port)), self._timeout_s)
        made.settimeout(None)
        self._own.file = made.makefile("rwb")
        return self._own.file

    def end(self) -> None:
        self.ask("end", self._token)
        self._broken = True


class Client:
    """One release of the bindings: ``functions`` are what its module ``dcgm_agent`` has."""

    def __init__(self, major: int, health: type[Any], diag: type[Any]) -> None:
        self._major = major
        self._health = health
        self._diag = diag

    def functions(self) -> dict[str, Any]:
        """By name; DCGM 3 has no event that names its GPU. CORRAL_FAKE_DCGM_GONE: what a release has no more."""
        names = [name for name in dir(self) if name.startswith("dcgm")]
        gone = {"dcgmPolicyRegister_v2", "dcgmConnect_v3"} if self._major == 3 else set()
        gone |= set(os.environ.get("CORRAL_FAKE_DCGM_GONE", "").split(","))
        return {name: getattr(self, name) for name in names if name not in gone}

    # the connection

    def dcgmInit(self) -> int:
        return 0

    def dcgmVersionInfo(self) -> Any:
        version = os.environ.get("CORRAL_FAKE_DCGM_VERSION", f"{self._major}.6.0")
        return structs.VersionInfo(rawBuildInfoString=f"version:{version};arch:x86_64;buildid:;".encode())

    def dcgmConnect_v2(self, address: str, parameters: Any, version: int = 0) -> Session:
        unix, timeout_s = bool(parameters.addressIsUnixSocket), parameters.timeoutMs / 1000
        session = Session(address, unix=unix, timeout_s=timeout_s)
        session.ask("connect", self._major)
        return session

    def dcgmConnect_v3(self, address: str, parameters: Any) -> Session:
        if parameters.version != structs.version_of(structs.ConnectParameters3, 1):
            raise structs.DCGMError(-12)
        scheme, _, place = address.partition("://")
        session = Session(place, unix=scheme == "unix", timeout_s=parameters.timeoutMs / 1000)
        session.ask("connect", self._major)
        return session

    def dcgmStartEmbedded(self, mode: int) -> Session:
        session = Session(os.environ["CORRAL_FAKE_DCGM_EMBEDDED"], unix=False, timeout_s=1.0)
        session.ask("connect", self._major)
        return session

    def dcgmDisconnect(self, session: Session) -> int:
        session.end()
        return 0

    # GPUs and groups

    def dcgmGetAllDevices(self, session: Session) -> list[int]:
        return list(session.ask("devices"))

    def dcgmGetDeviceAttributes(self, session: Session, number: int, version: int = 0) -> Any:
        found = structs.Attributes()
        for name, text in session.ask("attributes", number).items():
            setattr(found.identifiers, name, text.encode())
        return found

    def dcgmGetGpuStatus(self, session: Session, number: int) -> int:
        return int(session.ask("status", number))

    def dcgmGroupCreate(self, session: Session, kind: int, name: str) -> int:
        return int(session.ask("group", name))

    def dcgmGroupAddEntity(self, session: Session, group: int, entity: int, number: int) -> int:
        session.ask("add", group, entity, number)
        return 0

    # fields

    def dcgmFieldGroupCreate(self, session: Session, fields: list[int], name: str) -> int:
        return int(session.ask("field_group", fields, name))

    def dcgmFieldGroupDestroy(self, session: Session, made: int) -> int:
        session.ask("field_group_end", made)
        return 0

    def dcgmWatchFields(
        self, session: Session, group: int, made: int, microseconds: int, keep_s: float, samples: int
    ) -> int:
        session.ask("watch", group, made, microseconds)
        return 0

    def dcgmUnwatchFields(self, session: Session, group: int, made: int) -> int:
        session.ask("unwatch", group, made)
        return 0

    def dcgmUpdateAllFields(self, session: Session, wait: int) -> int:
        session.ask("refresh")
        return 0

    def dcgmEntitiesGetLatestValues(self, session: Session, entities: list[Any], fields: list[int], flags: int) -> Any:
        found = session.ask("values", [pair.entityId for pair in entities], fields, flags)
        values = (structs.FieldValue2 * len(found))()
        for value, (number, field, kind, status, at, content) in zip(values, found, strict=True):
            value.entityGroupId, value.entityId, value.fieldId = 1, number, field
            value.fieldType, value.status, value.ts = ord(kind), status, int(at * 1e6)
            _fill(value.value, kind, content)
        return values

    # health and policy

    def dcgmHealthSet(self, session: Session, group: int, systems: int) -> int:
        session.ask("health_set", group, systems)
        return 0

    def dcgmHealthCheck(self, session: Session, group: int, version: int = 0) -> Any:
        incidents = session.ask("health_check", group)
        found = self._health(incidentCount=len(incidents))
        for incident, (number, system, health, code) in zip(found.incidents, incidents, strict=False):
            incident.system, incident.health, incident.error.code = system, health, code
            incident.error.msg = b"GPU 3292488880 has a text with a wrong number in it"  # as 4.6.0 prints it
            incident.entityInfo.entityGroupId, incident.entityInfo.entityId = 1, number
        found.overallHealth = max((health for _, _, health, _ in incidents), default=0)
        return found

    def dcgmStatusCreate(self) -> int:
        return 1

    def dcgmStatusDestroy(self, status: int) -> int:
        return 0

    def dcgmPolicyGet(self, session: Session, group: int, count: int, status: int) -> list[Any]:
        return [structs.Policy(condition=condition) for condition in session.ask("policy_get", group)]

    def dcgmPolicySet(self, session: Session, group: int, policy: Any, status: int) -> int:
        if policy.version != structs.version_of(structs.Policy, 1):
            raise structs.DCGMError(-12)
        session.ask("policy_set", group, policy.condition)
        return 0

    def dcgmPolicyRegister_v2(self, session: Session, group: int, condition: int, call: Any, user: Any) -> int:
        session.ask("policy_register", group, condition)
        threading.Thread(target=_follow, args=(session, call), daemon=True).start()
        return 0

    # diagnostics

    def dcgmRunDiagnostic(self, session: Session, group: int, level: int) -> Any:
        found = session.ask("diag", group, level)
        return _diag_of_3(self._diag, found) if self._major == 3 else _diag_of_4(self._diag, found)

    def dcgmStopDiagnostic(self, session: Session) -> None:
        session.ask("stop_diag")

    def inject(self, session: Session, number: Any, value: Any) -> int:
        """The exported C function ``dcgmInjectFieldValue``; ``value`` comes by reference."""
        held = value._obj
        content = held.value.dbl if chr(held.fieldType) == "d" else held.value.i64
        session.ask("inject", number.value, held.fieldId, content, held.ts / 1e6)
        return 0


def _fill(union: Any, kind: str, content: Any) -> None:
    if kind == "s":
        union.str = content.encode()
    elif kind == "d":
        union.dbl = content
    else:
        union.i64 = int(content)


def _follow(session: Session, call: Any) -> None:
    """The library's own thread: it calls back as events come."""
    try:
        while True:
            for condition, number, figure in session.ask("events"):
                response = structs.PolicyResponse2(condition=condition, gpuId=number)
                if condition == 0x40:
                    response.val.xid.errnum = figure
                else:
                    response.val.dbe.numerrors = figure
                call(pointer(response), 0)
            time.sleep(EVENT_S)
    except structs.DCGMError:
        return


def _diag_of_4(kind: type[Any], found: list[Any]) -> Any:
    response = kind(version=12 << 24)
    names = list(dict.fromkeys(test for test, *_ in found))
    response.numTests = len(names)
    for index, name in enumerate(names):
        response.tests[index].name = name.encode()
    for test, number, result, code in found:
        run, at = response.tests[names.index(test)], response.numResults
        one = response.results[at]
        one.entity.entityGroupId, one.entity.entityId, one.result, one.testId = 1, number, result, names.index(test)
        run.resultIndices[run.numResults] = at
        run.numResults, response.numResults = run.numResults + 1, at + 1
        if code:
            error = response.errors[response.numErrors]
            error.entity.entityGroupId, error.entity.entityId = 1, number
            error.code, error.testId = code, names.index(test)
            run.errorIndices[run.numErrors] = response.numErrors
            run.numErrors, response.numErrors = run.numErrors + 1, response.numErrors + 1
    return response


PLUGINS_OF_3 = ("memory", "diagnostic", "pcie", "sm_stress", "targeted_stress", "targeted_power", "memory_bandwidth")


def _diag_of_3(kind: type[Any], found: list[Any]) -> Any:
    response = kind(version=10 << 24)
    numbers = sorted({number for _, number, _, _ in found})
    response.gpuCount = len(numbers)
    for at, number in enumerate(numbers):
        response.perGpuResponses[at].gpuId = number
        for result in response.perGpuResponses[at].results:
            result.result = 4  # not run
    for test, number, result, code in found:
        one = response.perGpuResponses[numbers.index(number)].results[PLUGINS_OF_3.index(test)]
        one.result, one.error[0].code, one.error[0].gpuId = result, code, number
    return response
