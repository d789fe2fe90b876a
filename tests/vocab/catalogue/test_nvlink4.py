"""Xid 74 by the bits of its registers."""

import pytest

from vocab.catalogue import nvlink4
from vocab.events import Recovery, Severity


def verdict(*words, times=0):
    found = nvlink4.classes(words)
    return nvlink4.judge(found, {each.reason: times or 1 for each in found})


@pytest.mark.parametrize("bit", [0, 23, 30])
def test_harmless_bits_are_information(bit):
    assert verdict(hex(1 << bit))[:2] == (Severity.INFO, Recovery.NONE)


@pytest.mark.parametrize("words", [("0x2",), ("0x100000",), ("0x0", "0x0", "0x0", "0x10000"), ("0x100001",)])
def test_an_echo_alone_asks_for_a_report(words):
    found = verdict(*words)
    assert found.secondary
    assert found[:2] == (Severity.WARNING, Recovery.CONTACT_SUPPORT)


def test_an_echo_beside_an_error_of_the_link_itself_is_not_secondary():
    assert not verdict("0x100010").secondary


@pytest.mark.parametrize(("times", "severity"), [(1, "info"), (2, "info"), (3, "error"), (4, "error")])
@pytest.mark.parametrize("words", [("0x10",), ("0x20",), ("0", "0", "0x40"), ("0", "0", "0", "0", "0x40000")])
def test_parity_errors_matter_from_the_third_on(words, times, severity):
    assert verdict(*words, times=times).severity == severity


@pytest.mark.parametrize("bit", [8, 9, 12, 16, 17, 21, 22, 24, 28])
def test_connections_and_signals_are_for_a_person_and_hold_nothing(bit):
    assert verdict(hex(1 << bit))[:2] == (Severity.WARNING, Recovery.CONTACT_SUPPORT)


def test_all_reasons_are_named():
    assert verdict("0x400010").reasons == ("hw ecc/parity", "signal integrity, check mechanicals")


@pytest.mark.parametrize("words", [(), ("0x0",) * 7, ("0x4",), ("rubbish",), ("0x0", "0xffffffff")])
def test_registers_that_the_table_does_not_know_have_no_verdict(words):
    assert verdict(*words) is None
