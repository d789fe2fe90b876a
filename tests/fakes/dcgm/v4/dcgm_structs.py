"""Stands in for the module of this name of DCGM 4's bindings."""

# ruff: noqa: N802, N803, N816  # the names are those of the bindings

import os
from collections.abc import Callable
from typing import Any

from tests.fakes.dcgm import structs

DCGMError = structs.DCGMError
c_dcgmGroupEntityPair_t = structs.EntityPair
c_dcgmFieldValue_v1 = structs.FieldValue1
c_dcgmFieldValue_v2 = structs.FieldValue2
dcgmFieldValue_version1 = structs.version_of(structs.FieldValue1, 1)
c_dcgmConnectV2Params_v2 = structs.ConnectParameters
c_dcgmConnectV3Params_v1 = structs.ConnectParameters3
c_dcgmConnectV3Params_version = structs.version_of(structs.ConnectParameters3, 1)
c_dcgmHealthResponse_v5 = structs.health_response(1024)
c_dcgmPolicy_v1 = structs.Policy
dcgmPolicy_version1 = structs.version_of(structs.Policy, 1)
c_dcgmPolicyCallbackResponse_v2 = structs.PolicyResponse2
DIAG_RESPONSE = structs.DiagResponse4
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _dcgmInit(libDcgmPath: str | None = None) -> None:
    if os.environ.get("CORRAL_FAKE_DCGM_NO_LIBRARY"):
        raise DCGMError(-25)


def _dcgmGetFunctionPointer(name: str) -> Callable[..., Any]:
    return FUNCTIONS[name]


def _dcgmCheckReturn(status: int) -> int:
    if status:
        raise DCGMError(status)
    return status
