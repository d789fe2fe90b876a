"""NVLink 5 decode: both unit layouts, promotion, and what happens without a row."""

import pytest

from vocab.catalogue.nvlink5 import decode
from vocab.catalogue.nvlink5_rules import RULES
from vocab.events import Recovery, Severity


def test_fatal_link_event_resets_the_gpu():
    verdict = decode(149, unit="NETIR_LINK_EVT", fatal=True, intrinfo=0x021425C6, error_status=0)
    assert verdict.subcode == 33
    assert (verdict.severity, verdict.recovery) == (Severity.CRITICAL, Recovery.RESET_GPU)
    assert (verdict.bucket, verdict.then) == ("RESET_GPU", "INVESTIGATE_PEER_DEVICE")


def test_nonfatal_with_ignore_is_a_note():
    verdict = decode(145, unit="RLW_RXPIPE", fatal=False, intrinfo=0x0407B0C2, error_status=8)
    assert (verdict.severity, verdict.recovery) == (Severity.INFO, Recovery.NONE)


def test_fatal_with_ignore_is_an_error():
    verdict = decode(149, unit="NETIR_LINK_EVT", fatal=True, intrinfo=38 << 20, error_status=0)
    assert (verdict.severity, verdict.recovery) == (Severity.ERROR, Recovery.NONE)


def test_lost_packets_wait_for_what_the_driver_says_in_a_154():
    verdict = decode(145, unit="RLW_SRC_TRACK", fatal=False, intrinfo=0x040868E2, error_status=8)
    assert (verdict.severity, verdict.recovery) == (Severity.WARNING, Recovery.NONE)


@pytest.mark.parametrize(
    ("intrinfo", "driver"),
    [(7 << 5 | 2, 570), (7, 580), (7 << 5 | 2, None), (7, None)],
    ids=["old layout", "new layout", "old, driver unknown", "new, driver unknown"],
)
def test_unit_is_found_by_its_number_where_the_name_is_new(intrinfo, driver):
    verdict = decode(145, unit=None, fatal=True, intrinfo=intrinfo, error_status=1, driver=driver)
    assert verdict.unit == "RLW_SRC_TRACK"
    assert verdict.recovery is Recovery.RESET_GPU


def test_layout_follows_the_driver():
    verdict = decode(145, unit=None, fatal=True, intrinfo=7 << 5 | 2, error_status=1, driver=580)
    assert verdict.bucket is None


@pytest.mark.parametrize(("intrinfo", "driver"), [(6 << 5 | 2 | 1 << 10, 570), (6 | 1 << 7, 580)])
def test_promoted_error_is_a_reset(intrinfo, driver):
    verdict = decode(145, unit="RLW_RXPIPE", fatal=True, intrinfo=intrinfo, error_status=1, driver=driver)
    assert verdict.promoted
    assert (verdict.severity, verdict.recovery) == (Severity.CRITICAL, Recovery.RESET_GPU)


@pytest.mark.parametrize(
    ("fatal", "severity"), [(True, Severity.ERROR), (False, Severity.WARNING), (None, Severity.WARNING)]
)
def test_without_a_row_a_person_looks(fatal, severity):
    for intrinfo in (None, 0x3F << 20):
        verdict = decode(145, unit="NEW_UNIT", fatal=fatal, intrinfo=intrinfo, error_status=None)
        assert (verdict.severity, verdict.recovery, verdict.bucket) == (severity, Recovery.INVESTIGATE, None)


@pytest.mark.parametrize(("xid", "rule"), [(xid, rule) for xid, rules in RULES.items() for rule in rules])
def test_every_rule_can_be_reached_by_name_and_by_number(xid, rule):
    status = rule.statuses[0] if rule.statuses else 0xABC
    old = rule.subcode << 20 | rule.old_unit << 5 | (xid - 143 if xid < 150 else 0)
    new = rule.subcode << 20 | rule.new_unit
    for unit, intrinfo, driver in ((rule.names[-1], old, 570), (None, old, 570), (None, new, 580)):
        verdict = decode(xid, unit=unit, fatal=None, intrinfo=intrinfo, error_status=status, driver=driver)
        assert verdict.bucket == rule.immediate
