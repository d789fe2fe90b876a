"""Xids of the ways in and out of a GPU: PCIe, NVLink, C2C."""

from vocab.catalogue.xid_form import C, P, R, Row, S

# fmt: off
LISTED: tuple[Row, ...] = (
    (74, "NVLink error, generation 4 and older", S.CRITICAL, R.INVESTIGATE, P.FABRIC, C.RESET, "WORKFLOW_NVLINK_ERR"),
    (79, "GPU has fallen off the bus", S.CRITICAL, R.REBOOT_NODE, P.GPU, C.REBOOT, "RESTART_BM"),
    (121, "C2C link errors, corrected", S.WARNING, R.NONE, P.GPU, None, "IGNORE"),
    (136, "NVLink training failed", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (137, "NVLink peer access refused", S.WARNING, R.NONE, P.PROCESS, None, "IGNORE"),
    (144, "NVLink 5: SAW error", S.ERROR, R.INVESTIGATE, P.GPU, C.RESET, "WORKFLOW_NVLINK5_ERR"),
    (145, "NVLink 5: RLW error", S.ERROR, R.INVESTIGATE, P.PROCESS, C.RESET, "WORKFLOW_NVLINK5_ERR"),
    (146, "NVLink 5: TLW error", S.ERROR, R.INVESTIGATE, P.GPU, C.RESET, "WORKFLOW_NVLINK5_ERR"),
    (147, "NVLink 5: TREX error", S.WARNING, R.NONE, P.GPU, None, "WORKFLOW_NVLINK5_ERR"),
    (148, "NVLink 5: NVLPW control error", S.WARNING, R.NONE, P.GPU, None, "WORKFLOW_NVLINK5_ERR"),
    (149, "NVLink 5: NETIR link event", S.CRITICAL, R.INVESTIGATE, P.FABRIC, C.RESET, "WORKFLOW_NVLINK5_ERR"),
    (150, "NVLink 5: MSE watchdog", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "WORKFLOW_NVLINK5_ERR"),
    (155, "NVLink down, marked by software", S.ERROR, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (159, "coherent C2C error without data", S.ERROR, R.INVESTIGATE, P.GPU, C.RESET, "CHECK_UVM"),
)
UNUSED: tuple[Row, ...] = (
    (18, "bus mastering is off in PCI configuration", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, "CONTACT_SUPPORT"),
    (108, "a peer's NVLink access could not be translated", S.WARNING, R.NONE, P.PROCESS, None, "IGNORE"),
)
UNLISTED: tuple[Row, ...] = (
    (166, "NVLink encryption error", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, None),
    (167, "fatal PCIe timeout", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, None),
    (170, "NVLink security interrupt", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, None),
    (173, "C2C link failed", S.CRITICAL, R.REBOOT_NODE, P.NODE, C.REBOOT, None),
    (176, "PCIe correctable errors raised to a fault", S.WARNING, R.CONTACT_SUPPORT, P.GPU, C.RESET, None),
)
# fmt: on
