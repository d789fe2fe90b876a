"""Stands in for the module of this name of DCGM 3's bindings."""

import dcgm_structs

from tests.fakes.dcgm.client import Client

CLIENT = Client(3, dcgm_structs.c_dcgmHealthResponse_v4, dcgm_structs.DIAG_RESPONSE)
globals().update(CLIENT.functions())
dcgm_structs.FUNCTIONS["dcgmInjectFieldValue"] = CLIENT.inject
