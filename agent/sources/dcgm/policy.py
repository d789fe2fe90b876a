"""DCGM's policy events (4.0 and newer): Xids, double-bit errors and NVLink errors, pushed as they happen.

The engine has one policy a GPU, which its clients share. If somebody has set one, it stays as it is and we only
listen; ours has no action and no validation. DCGM 3 does not say which GPU an event is of: there the Xids are
read from field 230.
"""

from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, c_int, c_uint64
from time import time
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.dcgm.engine import Engine
from agent.sources.dcgm.names import GONE
from vocab.observations import DriverEvent, GpuIdentity

REGISTER = "dcgmPolicyRegister_v2"
# condition -> (index of its parameter, our word, member of the response, its figure)
CONDITIONS: dict[int, tuple[int, str, str, str]] = {
    0x1: (0, "ecc", "dbe", "numerrors"),
    0x20: (5, "other", "nvlink", "counter"),
    0x40: (6, "xid", "xid", "errnum"),
}
ALL, XID = sum(CONDITIONS), 0x40
FIRST_BLANK = 2**31 - 16  # of an int32 that nobody has set


class Policy(msgspec.Struct):
    """The events of one group. ``push`` is called on a thread of the library."""

    engine: Engine
    group: Any
    gpus: Mapping[int, GpuIdentity]
    push: Callable[[DriverEvent], None]
    callback: Any = None  # must live as long as the library may call it

    def start(self) -> bool:
        """Listen; returns whether Xids will be told. Raises CallFailed if the connection is gone."""
        call, handle = self.engine.call, self.engine.handle
        if not call.has(REGISTER):
            return False
        response = POINTER(call.structs.c_dcgmPolicyCallbackResponse_v2)
        self.callback = CFUNCTYPE(c_int, response, c_uint64)(self._called)
        try:
            conditions = self._set_if_none()
            call(REGISTER, handle, self.group, ALL, self.callback, None)
        except CallFailed as failed:
            if failed.error in GONE:
                raise
            return False  # not a data-centre board, or the policy module is not loaded
        return all(condition & XID for condition in conditions)

    def _set_if_none(self) -> list[int]:
        """The conditions of each GPU, set by somebody or by us."""
        call, handle = self.engine.call, self.engine.handle
        status = call("dcgmStatusCreate")
        try:
            policies = call("dcgmPolicyGet", handle, self.group, len(self.gpus), status)
            conditions = [policy.condition if policy.condition < FIRST_BLANK else 0 for policy in policies]
            if any(conditions):
                return conditions
            call("dcgmPolicySet", handle, self.group, self._ours(), status)
            return [ALL]
        finally:
            call("dcgmStatusDestroy", status)

    def _ours(self) -> Any:
        structs = self.engine.call.structs
        policy = structs.c_dcgmPolicy_v1()
        policy.version, policy.condition = structs.dcgmPolicy_version1, ALL
        for index, *_ in CONDITIONS.values():
            policy.parms[index].tag, policy.parms[index].val.boolean = 0, True
        return policy

    def _called(self, pointer: Any, _: int) -> int:
        response = pointer.contents
        gpu = self.gpus.get(int(response.gpuId))
        found = CONDITIONS.get(int(response.condition))
        if found is None:
            return 0
        _, word, member, figure = found
        number = int(getattr(getattr(response.val, member), figure))
        self.push(DriverEvent(at=time(), source="dcgm", gpu=gpu.uuid if gpu else None, type=word, data=number))
        return 0
