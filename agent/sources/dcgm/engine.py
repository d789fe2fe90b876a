"""The one adapter to a host engine, of DCGM 3.1 to 4.6: what differs between releases differs here only.

3.x: connects by dcgmConnect_v2, has no events that name their GPU
4.x: the same, from 4.5 on also dcgmConnect_v3, which is used where the older call is gone
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_uint
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.dcgm.bindings import Caller
from agent.sources.dcgm.names import GONE, GPU_OK
from agent.sources.dcgm.values import Value, decode
from vocab.observations import GpuIdentity
from vocab.pci import pci_address

EMBEDDED = "embedded"
UNIX = "unix://"
CONNECT_S = 3.0
FE_GPU = 1  # DCGM_FE_GPU
GROUP_EMPTY = 1  # DCGM_GROUP_EMPTY
MODE_AUTO = 1  # DCGM_OPERATION_MODE_AUTO
KEEP_S = 60.0  # of a watched field, and two periods: only the last value is read
INJECT = "dcgmInjectFieldValue"
DOUBLES = frozenset({155, 157, 160, 163, 164, *range(1001, 1009)})  # fields that are no whole numbers
LOCAL = (EMBEDDED, UNIX, "localhost:", "127.", "[::1]")


def is_local(address: str) -> bool:
    """Whether the engine is on this machine, so that its clock and its driver are ours."""
    return address.startswith(LOCAL)


class Known(msgspec.Struct, frozen=True):
    """A GPU as the host engine lists it; ``gpu`` None if it cannot say who it is."""

    number: int  # the engine's own; it may differ from NVML's index
    gpu: GpuIdentity | None
    driver: str | None = None  # its version


class Engine:
    """A host engine, reached. ``address``: HOST:PORT, unix://PATH or ``embedded``. Every call may raise CallFailed."""

    def __init__(self, call: Caller, address: str) -> None:
        self.call = call
        call("dcgmInit")
        self.handle = _start(call) if address == EMBEDDED else _connect(call, address)

    def version(self) -> str:
        """Of the library, as ``4.6.0``; empty if it does not say."""
        built: str = getattr(self.call("dcgmVersionInfo"), "rawBuildInfoString", "")
        parts = dict(part.partition(":")[::2] for part in built.split(";"))
        return parts.get("version", "")

    def beside(self, call: Caller) -> "Engine":
        """The same connection for another thread."""
        other = Engine.__new__(Engine)
        other.call, other.handle = call, self.handle
        return other

    # GPUs

    def gpus(self) -> tuple[Known, ...]:
        """All that the engine has ever listed, lost ones too."""
        return tuple(map(self._known, self.numbers()))

    def numbers(self) -> tuple[int, ...]:
        """Their numbers alone."""
        return tuple(int(number) for number in self.call("dcgmGetAllDevices", self.handle))

    def _known(self, number: int) -> Known:
        try:
            found = self.call("dcgmGetDeviceAttributes", self.handle, number).identifiers
        except CallFailed as failed:
            if failed.error in GONE:
                raise
            return Known(number, None)
        pci = pci_address(found.pciBusId)
        if not found.uuid.startswith("GPU-") or pci is None:
            return Known(number, None)
        identity = GpuIdentity(
            uuid=found.uuid, index=number, pci=pci, serial=_text(found.serial), name=_text(found.deviceName)
        )
        return Known(number, identity, _text(found.driverVersion))

    def status(self, number: int) -> int:
        """Of one GPU: see names.GPU_STATUS."""
        if not self.call.has("dcgmGetGpuStatus"):
            return GPU_OK
        return int(self.call("dcgmGetGpuStatus", self.handle, number))

    # groups and values

    def group(self, name: str, numbers: Iterable[int]) -> tuple[Any, frozenset[int]]:
        """A group of these GPUs, and which of them are in it: a lost one cannot be. It ends with the connection."""
        group = self.call("dcgmGroupCreate", self.handle, GROUP_EMPTY, name)
        return group, frozenset(number for number in numbers if self._add(group, number))

    def _add(self, group: Any, number: int) -> bool:
        try:
            self.call("dcgmGroupAddEntity", self.handle, group, FE_GPU, number)
        except CallFailed as failed:
            if failed.error in {"GPU_IS_LOST", "GPU_NOT_SUPPORTED", "BADPARAM"}:
                return False
            raise
        return True

    def watch(self, group: Any, name: str, fields: Sequence[int], period_s: float) -> Any:
        """Let the engine read these fields of the group each period; returns what ``unwatch`` takes."""
        watched = self.call("dcgmFieldGroupCreate", self.handle, list(fields), name)
        keep_s = KEEP_S + 2 * period_s
        try:
            self.call("dcgmWatchFields", self.handle, group, watched, int(period_s * 1e6), keep_s, 2)
        except CallFailed:
            self.call("dcgmFieldGroupDestroy", self.handle, watched)
            raise
        return watched

    def unwatch(self, group: Any, watched: Any) -> None:
        """End a watch."""
        self.call("dcgmUnwatchFields", self.handle, group, watched)
        self.call("dcgmFieldGroupDestroy", self.handle, watched)

    def refresh(self) -> None:
        """Wait until every watched field was read once."""
        self.call("dcgmUpdateAllFields", self.handle, 1)

    def values(self, numbers: Sequence[int], fields: Sequence[int], *, live: bool = False) -> Iterator[Value]:
        """The last values of these fields of these GPUs; ``live`` asks the driver instead of the engine's memory."""
        pair = self.call.structs.c_dcgmGroupEntityPair_t
        entities = [pair(FE_GPU, number) for number in numbers]
        return map(decode, self.call("dcgmEntitiesGetLatestValues", self.handle, entities, list(fields), int(live)))

    def inject(self, number: int, field: int, figure: float) -> None:
        """Put a value into the engine's memory, as of now, by its own test function: all who ask it are told it.

        The bindings of DCGM's packages have no call for it, so the library's exported function is called as they would.
        """
        structs = self.call.structs
        value = structs.c_dcgmFieldValue_v1()
        value.version = structs.dcgmFieldValue_version1
        value.fieldId, value.fieldType, value.status = field, ord("d" if field in DOUBLES else "i"), 0
        value.ts = int(time.time() * 1e6)
        if field in DOUBLES:
            value.value.dbl = figure
        else:
            value.value.i64 = int(figure)
        self.call.exported(INJECT, self.handle, c_uint(number), byref(value))

    def close(self) -> None:
        """Disconnect; groups and watches of the connection end."""
        self.call("dcgmDisconnect", self.handle)


def _text(value: str) -> str | None:
    """A text that is one; blanks stand in angle brackets."""
    return value if value and not value.startswith("<<<") else None


def _start(call: Caller) -> Any:
    return call("dcgmStartEmbedded", MODE_AUTO)


def _connect(call: Caller, address: str) -> Any:
    path = address.removeprefix(UNIX) if address.startswith(UNIX) else None
    allowed_s = CONNECT_S + 1.0
    if call.has("dcgmConnect_v2"):
        parameters = call.structs.c_dcgmConnectV2Params_v2()
        parameters.timeoutMs, parameters.addressIsUnixSocket = int(CONNECT_S * 1000), int(path is not None)
        return call("dcgmConnect_v2", path or address, parameters, allowed_s=allowed_s)
    parameters = call.structs.c_dcgmConnectV3Params_v1()
    parameters.version = call.structs.c_dcgmConnectV3Params_version
    parameters.timeoutMs = int(CONNECT_S * 1000)
    return call("dcgmConnect_v3", address if path else f"tcp://{address}", parameters, allowed_s=allowed_s)
