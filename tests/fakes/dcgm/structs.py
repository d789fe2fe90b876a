"""The structs, constants and errors of DCGM's bindings that the agent's adapter touches, for both releases.

Names, members and sizes are those of dcgm_structs.h of 3.1 to 4.6; test_structs.py holds the sizes.
"""

from ctypes import (
    Structure,
    Union,
    c_bool,
    c_byte,
    c_char,
    c_double,
    c_int,
    c_int64,
    c_longlong,
    c_short,
    c_ubyte,
    c_uint,
    c_uint32,
    c_ushort,
    sizeof,
)
from typing import Any

MAX_TEXT = 256


class Texts:
    """As the bindings do: bytes come out as text, so a number that is read as a text is a UnicodeDecodeError."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return value.decode() if isinstance(value, bytes) else value


def version_of(struct: type[Structure], number: int) -> int:
    return sizeof(struct) | number << 24


class DCGMError(Exception):
    """``value`` is the return code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"DCGM error {value}")
        self.value = value


class EntityPair(Structure):
    _fields_ = [("entityGroupId", c_uint32), ("entityId", c_uint32)]


class FieldUnion(Texts, Union):
    _fields_ = [("i64", c_int64), ("dbl", c_double), ("str", c_char * MAX_TEXT), ("blob", c_byte * 4096)]


class FieldValue1(Structure):
    _fields_ = [
        *(("version", c_uint), ("fieldId", c_ushort), ("fieldType", c_short), ("status", c_int)),
        *(("ts", c_int64), ("value", FieldUnion)),
    ]


class FieldValue2(Structure):
    _fields_ = [
        *(("version", c_uint), ("entityGroupId", c_uint), ("entityId", c_uint), ("fieldId", c_ushort)),
        *(("fieldType", c_short), ("status", c_int), ("unused", c_uint), ("ts", c_int64), ("value", FieldUnion)),
    ]


class ConnectParameters(Structure):
    _fields_ = [
        *(("version", c_uint), ("persistAfterDisconnect", c_uint), ("timeoutMs", c_uint)),
        ("addressIsUnixSocket", c_uint),
    ]


class ConnectParameters3(Structure):
    """Of DCGM 4.5; its size in the header is not known here, so only the adapter's use of it is shown."""

    _fields_ = [("version", c_uint), ("persistAfterDisconnect", c_uint), ("timeoutMs", c_uint)]


class VersionInfo(Texts, Structure):
    _fields_ = [("version", c_uint), ("rawBuildInfoString", c_char * (2 * MAX_TEXT))]


class Identifiers(Texts, Structure):
    _fields_ = [
        ("version", c_uint),
        *((name, c_char * MAX_TEXT) for name in ("brandName", "deviceName", "pciBusId", "serial", "uuid", "vbios")),
        *(("inforomImageVersion", c_char * MAX_TEXT), ("pciDeviceId", c_uint32), ("pciSubSystemId", c_uint32)),
        *(("driverVersion", c_char * MAX_TEXT), ("virtualizationMode", c_uint32)),
    ]


class Attributes(Structure):
    """Only what is read of it; the rest is room."""

    _fields_ = [("version", c_uint), ("before", c_uint * 779), ("identifiers", Identifiers), ("after", c_uint * 9)]


class ErrorDetail(Texts, Structure):
    _fields_ = [("msg", c_char * 1024), ("code", c_uint)]


class Incident(Structure):
    _fields_ = [("system", c_uint), ("health", c_uint32), ("error", ErrorDetail), ("entityInfo", EntityPair)]


def health_response(incidents: int) -> type[Structure]:
    """With room for so many: 64 in DCGM 3, 1024 in DCGM 4."""

    class HealthResponse(Structure):
        _fields_ = [
            *(("version", c_uint32), ("overallHealth", c_uint32), ("incidentCount", c_uint32)),
            ("incidents", Incident * incidents),
        ]

    return HealthResponse


class PolicyValue(Union):
    _fields_ = [("boolean", c_bool), ("llval", c_longlong)]


class PolicyParameter(Structure):
    _fields_ = [("tag", c_uint), ("val", PolicyValue)]


class Policy(Structure):
    _fields_ = [
        *((name, c_uint) for name in ("version", "condition", "mode", "isolation", "action", "validation", "response")),
        ("parms", PolicyParameter * 7),
    ]


class Dbe(Structure):
    _fields_ = [("timestamp", c_longlong), ("location", c_int), ("numerrors", c_uint)]


class Nvlink(Structure):
    _fields_ = [("timestamp", c_longlong), ("fieldId", c_ushort), ("counter", c_uint)]


class Xid(Structure):
    _fields_ = [("timestamp", c_longlong), ("errnum", c_uint)]


class Violation(Union):
    _fields_ = [("dbe", Dbe), ("nvlink", Nvlink), ("xid", Xid)]


class PolicyResponse2(Structure):
    _fields_ = [("version", c_uint), ("condition", c_int), ("val", Violation), ("gpuId", c_uint)]


class DiagError(Texts, Structure):
    _fields_ = [
        *(("entity", EntityPair), ("code", c_uint), ("category", c_uint), ("severity", c_uint)),
        *(("msg", c_char * 512), ("testId", c_uint)),
    ]


class DiagResult(Structure):
    _fields_ = [("entity", EntityPair), ("result", c_int), ("testId", c_uint)]


class DiagRun(Texts, Structure):
    _fields_ = [
        *(("name", c_char * 32), ("pluginName", c_char * 32), ("result", c_uint)),
        *(("numErrors", c_ubyte), ("numInfo", c_ubyte), ("categoryIndex", c_ubyte), ("_unused", c_ubyte)),
        *(("numResults", c_ushort), ("errorIndices", c_ubyte * 32), ("infoIndices", c_ubyte * 128)),
        ("resultIndices", c_ushort * 1024),
    ]


class DiagResponse4(Structure):
    """Of DCGM 4, without its unused end."""

    _fields_ = [
        *(("version", c_uint), ("numTests", c_ubyte), ("numErrors", c_ubyte), ("numInfo", c_ubyte)),
        *(("numCategories", c_ubyte), ("numEntities", c_ushort), ("numResults", c_ushort)),
        *(("tests", DiagRun * 20), ("errors", DiagError * 32), ("results", DiagResult * 512)),
    ]


class DiagErrorDetail(Texts, Structure):
    _fields_ = [
        *(("msg", c_char * 512), ("gpuId", c_int), ("code", c_uint), ("category", c_uint), ("severity", c_uint)),
    ]


class DiagTestResult(Texts, Structure):
    _fields_ = [("result", c_uint), ("error", DiagErrorDetail * 5), ("info", c_char * 512)]


class DiagOfGpu(Structure):
    _fields_ = [("gpuId", c_uint), ("hwDiagnosticReturn", c_uint), ("results", DiagTestResult * 13)]


class DiagResponse3(Structure):
    """Of DCGM 3, without its end."""

    _fields_ = [
        *(("version", c_uint), ("gpuCount", c_uint), ("levelOneTestCount", c_uint)),
        *(("levelOneResults", DiagTestResult * 16), ("perGpuResponses", DiagOfGpu * 32)),
    ]
