"""What the payload of an Xid carries, code by code. Hex words stay strings, counters become numbers.

Texts: samples of twenty years of drivers and the open driver's sources. A payload that does not fit gives no fields.
No pattern begins with a repeat, and only the first ``_REACH`` characters are looked at: the cost is linear.
"""

import re
from collections.abc import Callable

from agent.kernel import memory
from agent.kernel.nvlink import link_error, nvlink5, peer_access, training
from agent.kernel.reading import Fields, channel, numbers, strings

_REACH = 4096  # the kernel cuts a record at about 1 KiB

_CLASS = re.compile(r", Class ([0-9a-f]{1,8}), Offset ([0-9a-f]{1,8}), Data ([0-9a-f]{1,16})")
_ERROR_CODE = re.compile(r", ErrorCode ([0-9a-f]{1,8})")
_SM = re.compile(r"\bon \(GPC (\d{1,4}), TPC (\d{1,4})(?:, SM (\d{1,4}))?\)(?:: (.{1,200}))?")
_ESR = re.compile(r"\b(0x[0-9a-fA-F]{1,16})=(0x[0-9a-fA-F]{1,16})")
_ENGMASK = re.compile(r"\bengmask ([0-9a-f]{1,8})")
_INTR = re.compile(r"\bintr0? ([0-9a-f]{1,8})")
_ENGINE = re.compile(r"\bENGINE (\S{1,40})(?: GPC(\d{1,3}))? (\S{1,60}) faulted @ (0x[0-9a-f_]{1,24})")
_FAULT = re.compile(r"\bFault is of type (\S{1,60})(?: (\S{1,60}))?")
_FAULTED = re.compile(r"\bfaulted @ (0x[0-9a-f_]{1,24})")
_WORD = re.compile(r"[0-9a-f]{8}")
_HALT = re.compile(r"([0-9a-f]{1,8})\(([0-9a-f]{1,8})\)")
_TIMEOUT = re.compile(r"\bafter (\d{1,6})s of waiting")
_GSP = re.compile(r"\bfrom (?:GPU(\d{1,4}) GSP|GSP(\d{1,4}))!")
_FUNCTION = re.compile(  # R515 prints the name alone
    r"\bExpected function (?:(\d{1,6}) \(([^)]{1,80})\)|([A-Z][A-Z_0-9]{1,60}))"
    r"(?: sequence (\d{1,12}))?(?: \(([0-9a-fx ]{1,80})\))?"
)
_TASK = re.compile(r"GSP (?:task|kernel) exception: ([^(@]{1,120}) \(cause:(0x[0-9a-f]{1,16})\)")
_TASK_ERROR = re.compile(r"GSP Error: Task (\d{1,6}) raised error code (0x[0-9a-f]{1,8}) for reason (0x[0-9a-f]{1,8})")
_PC = re.compile(r"@ pc:(0x[0-9a-f]{1,16})")
_GSP_PARTITION = re.compile(r"\bpartition:(\S{1,20}?)(?:,|$)")
_TASK_NUMBER = re.compile(r"\btask:(\d{1,6})")
_INFO = re.compile(r"\bInfo (0x[0-9a-f]{1,16})")
_CAUSED_BY = re.compile(r"\bcaused by previous Xid (\d{1,6})")
_ACTION = re.compile(r"\bfrom (0x[0-9a-f]{1,8}) \(([^)]{1,60})\) to (0x[0-9a-f]{1,8}) \(([^)]{1,60})\)")
_TYPE = re.compile(r"\(type (\d{1,6})\)")
_STATUS = re.compile(r"\b[Ss]tatus (?:= )?(0x[0-9a-f]{1,8})")


def fields_of(xid: int, payload: str) -> Fields:
    """The fields that this Xid's payload carries, and the channel where one is named in front."""
    text = payload[:_REACH]
    reader = _READERS.get(xid)
    if reader is None:
        return channel(text)
    return reader(text)


def _class_error(text: str) -> Fields:
    """Xid 69, and 13 in the same words; the channel stands behind a colon."""
    named = text.partition(": ")[2]
    return {
        **channel(named or text),
        **strings(_CLASS, text, "class", "offset", "data"),
        **strings(_ERROR_CODE, text, "error_code"),
    }


def _exception(text: str) -> Fields:
    if found := _SM.search(text):
        gpc, tpc, sm, reason = found.groups()
        return {"gpc": int(gpc), "tpc": int(tpc), "sm": None if sm is None else int(sm), "reason": reason}
    if registers := _ESR.findall(text):
        return {"esr": dict(registers)}
    return _class_error(text)


def _page_fault(text: str) -> Fields:
    fields = {**channel(text), **strings(_ENGMASK, text, "engmask"), **strings(_INTR, text, "intr")}
    if found := _ENGINE.search(text):
        engine, gpc, client, address = found.groups()
        fields |= {"engine": engine, "client": client, "fault_va": address.replace("_", "")}
        fields |= {} if gpc is None else {"gpc": int(gpc)}
    return fields | strings(_FAULT, text, "fault_type", "access")


def _translation(text: str) -> Fields:
    address = strings(_FAULTED, text, "fault_va")
    return {name: value.replace("_", "") for name, value in address.items()} | strings(
        _FAULT, text, "fault_type", "access"
    )


def _masked_channel(text: str) -> Fields:
    return {**channel(text), **strings(_ENGMASK, text, "engmask"), **strings(_INTR, text, "intr")}


def _torn_down(text: str) -> Fields:
    return {**channel(text), **numbers(_CAUSED_BY, text, "caused_by_xid")}


def _halt(text: str) -> Fields:
    """Words of the halted PMU; older drivers put ``addr(code)`` in front."""
    words = text.split()
    fields: Fields = {}
    if words and (head := _HALT.fullmatch(words[0])):
        fields = {"addr": head[1], "code": head[2]}
        words = words[1:]
    words = [word for word in words if _WORD.fullmatch(word)]
    return {"words": words, **fields} if words or fields else {}


def _switch_timeout(text: str) -> Fields:
    return {**channel(text), **strings(_INFO, text, "info")}


def _rpc_timeout(text: str) -> Fields:
    if not text.startswith("Timeout"):
        return {}
    timeout = _TIMEOUT.search(text)
    gsp = _GSP.search(text)
    fields: Fields = {
        "timeout_s": int(timeout[1]) if timeout else None,
        "gpu_instance": int(gsp[1] or gsp[2]) if gsp else None,
    }
    if call := _FUNCTION.search(text):
        number, name, alone, sequence, words = call.groups()
        fields |= {"function": int(number)} if number else {}
        fields |= {"function_name": name or alone, "data": (words or "").split()}
        fields |= {} if sequence is None else {"sequence": int(sequence)}
    return fields


def _firmware_crash(text: str) -> Fields:
    if old := _TASK_ERROR.match(text):  # R515
        return {"task": int(old[1]), "error_code": old[2], "reason": old[3]}
    return {
        **strings(_TASK, text, "cause", "cause_code"),
        **strings(_PC, text, "pc"),
        **strings(_GSP_PARTITION, text, "partition"),
        **numbers(_TASK_NUMBER, text, "task"),
    }


def _recovery(text: str) -> Fields:
    found = _ACTION.search(text)
    if not found:
        return {}
    return {
        "action_from": int(found[1], 16),
        "action_to": int(found[3], 16),
        "action_from_name": found[2],
        "action_to_name": found[4],
    }


def _typed(text: str) -> Fields:
    return numbers(_TYPE, text, "type")


def _boot(text: str) -> Fields:
    return strings(_STATUS, text, "error_status")


_READERS: dict[int, Callable[[str], Fields]] = {
    13: _exception,
    31: _page_fault,
    32: _masked_channel,
    43: _masked_channel,
    45: _torn_down,
    48: memory.uncorrectable,
    62: _halt,
    63: memory.repair_record,
    64: memory.repair_record,
    69: _class_error,
    74: link_error,
    92: memory.uncorrectable,
    94: memory.containment,
    95: memory.containment,
    108: _translation,
    109: _switch_timeout,
    119: _rpc_timeout,
    120: _firmware_crash,
    136: training,
    137: peer_access,
    140: memory.escape,
    143: _boot,
    **dict.fromkeys(range(144, 151), nvlink5),
    154: _recovery,
    155: nvlink5,
    156: memory.cluster,
    157: memory.cluster,
    160: memory.repair,
    171: memory.uncorrectable,
    172: memory.uncorrectable,
    175: _typed,
    177: memory.repair_record,
}
