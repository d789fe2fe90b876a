"""Xids of power, display, telemetry and self-tests: what says little about a server's GPU."""

from vocab.catalogue.xid_form import C, P, R, Row, S

# fmt: off
LISTED: tuple[Row, ...] = (
    (54, "auxiliary power cable is not connected", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.PERSON, "CHECK_MECHANICALS"),
    (106, "out-of-band management test message", S.INFO, R.NONE, P.GPU, None, "IGNORE"),
    (107, "out-of-band management test message, silent", S.INFO, R.NONE, P.GPU, None, "IGNORE"),
)
UNUSED: tuple[Row, ...] = (
    (5, "unused (once: FIFO run-out overflow)", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (10, "unused (once: graphics single step)", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (14, "made-up error of the driver's self-test", S.INFO, R.NONE, P.GPU, None, "IGNORE"),
    (15, "unused (once: scan-line timeout)", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (16, "display hung: no vertical blank", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (17, "unused (once: parameter error)", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (19, "display: missed notifier", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (23, "channel logging was switched on", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (49, "silent running: level set from the registry", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (50, "silent running: level moved by an error", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (51, "silent running: stress test failed", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (52, "silent running: level moved as it got hotter", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (53, "silent running: clocks reduced by heat", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (55, "silent running: sensor cannot be read", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (56, "display channel exception", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (81, "VGA subsystem error", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (87, "driver telemetry report", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (91, "reserved", S.WARNING, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (111, "display bundle error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (112, "display supervisor error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (113, "DisplayPort link training failed", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (114, "display pipeline underflow", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (115, "display core channel error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (116, "display window channel error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (117, "display cursor channel error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
    (118, "display head error", S.INFO, R.CONTACT_SUPPORT, P.GPU, None, "CONTACT_SUPPORT"),
)
UNLISTED: tuple[Row, ...] = (
    (162, "power smoothing is back", S.INFO, R.NONE, P.GPU, None, None),
    (163, "power smoothing was switched off", S.WARNING, R.INVESTIGATE, P.GPU, C.RESET, None),
    (164, "power smoothing is near its end of life", S.WARNING, R.NONE, P.GPU, None, None),
    (165, "power smoothing is worn out", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.PERSON, None),
)
# fmt: on
