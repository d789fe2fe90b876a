"""Xids of micro-controllers and firmware, of start-up, of time-outs of the whole GPU, and the driver's advice."""

from vocab.catalogue.xid_form import C, P, R, Row, S

# fmt: off
LISTED: tuple[Row, ...] = (
    (38, "context-switch firmware watchdog expired", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, "IGNORE"),
    (46, "GPU engine timed out", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (62, "power micro-controller (PMU) halted", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (78, "vGPU could not start", S.WARNING, R.INVESTIGATE, P.PROCESS, None, "UPDATE_SWFW"),
    (93, "InfoROM wear limit reached, update refused", S.WARNING, R.NONE, P.GPU, None, "IGNORE"),
    (109, "context switch timed out", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (110, "security fault latched", S.CRITICAL, R.RESET_GPU, P.NODE, C.REBOOT, "RESET_GPU"),
    (119, "GSP firmware did not answer in time", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (120, "GSP firmware crashed", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (143, "GPU initialisation failed", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
    (151, "confidential-computing key rotation failed", S.ERROR, R.REBOOT_NODE, P.NODE, C.REBOOT, "RESTART_VM"),
    (154, "the driver's recovery action changed", S.ERROR, R.INVESTIGATE, P.GPU, C.SIGNAL, "XID_154"),
    (158, "fatal internal timeout", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "RESET_GPU"),
)
UNUSED: tuple[Row, ...] = (
    (33, "security engine error", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (59, "PMU error, old drivers", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.RESET, "CONTACT_SUPPORT"),
    (61, "power micro-controller breakpoint", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (122, "PMU could not read the SPI flash", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (123, "PMU could not write the SPI flash", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (124, "PMU could not erase the SPI flash", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (125, "InfoROM file system error", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
)
UNLISTED: tuple[Row, ...] = (
    (169, "security processor (SEC2) halted", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, None),
)
# fmt: on
