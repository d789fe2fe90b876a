"""Xids of memory: ECC, containment, remapping, retirement, repair."""

from vocab.catalogue.xid_form import C, P, R, Row, S

# fmt: off
LISTED: tuple[Row, ...] = (
    (48, "uncorrectable (double-bit) ECC error", S.CRITICAL, R.DRAIN_AND_RESET, P.GPU, C.RESET, "WORKFLOW_XID_48"),
    (63, "memory repair recorded; it takes effect at the next reset", S.WARNING, R.NONE, P.GPU, None, "IGNORE"),
    (64, "memory repair could not be recorded", S.CRITICAL, R.RESET_GPU, P.GPU, C.PERSON, "RESET_GPU"),
    (92, "correctable ECC errors arrive at a high rate", S.WARNING, R.NONE, P.GPU, None, "IGNORE"),
    (94, "contained uncorrectable error: one client is hit", S.ERROR, R.RESTART_APP, P.PROCESS, None, "RESTART_APP"),
    (95, "uncontained uncorrectable error: all work is suspect", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (140, "uncorrectable ECC error escaped its handler", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (156, "an SM cluster (TPC) will be replaced by a spare", S.ERROR, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (157, "no spare SM cluster (TPC) left", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.PERSON, "IGNORE"),
    (160, "memory channel or L2 slice marked for repair", S.WARNING, R.NONE, P.GPU, None, "IGNORE"),
    (161, "memory channel or L2 slice could not be repaired", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.PERSON, "IGNORE"),
)
UNUSED: tuple[Row, ...] = (
    (57, "framebuffer link training failed", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, "CONTACT_SUPPORT"),
    (58, "video memory interface is unstable", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, "CONTACT_SUPPORT"),
    (90, "L2 cache error", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
)
UNLISTED: tuple[Row, ...] = (
    (168, "GPU runs with reduced memory", S.ERROR, R.RESET_GPU, P.GPU, C.REBOOT, None),
    (171, "uncorrectable DRAM error, detail of 48", S.CRITICAL, R.INVESTIGATE, P.GPU, C.RESET, None),
    (172, "uncorrectable SRAM error, detail of 48", S.CRITICAL, R.INVESTIGATE, P.GPU, C.RESET, None),
    (175, "memory subsystem timeout", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, None),
    (177, "memory bank marked for remapping", S.ERROR, R.RESET_GPU, P.GPU, C.RESET, None),
    (185, "a spare resource was used", S.WARNING, R.NONE, P.GPU, None, None),
)
# fmt: on
