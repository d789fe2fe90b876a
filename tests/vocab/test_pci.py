"""PCI addresses: one key for all spellings."""

import pytest

from vocab.pci import pci_address


@pytest.mark.parametrize(
    ("spelling", "key"),
    [
        ("00000000:16:00.0", "0000:16:00"),
        ("0000:16:00", "0000:16:00"),
        ("00000008:0A:00.0", "0008:0a:00"),
        ("0008:0a:00", "0008:0a:00"),
        ("0000:5D:00.0", "0000:5d:00"),
        ("5d:00", "0000:5d:00"),
        ("00010000:01:00.0", "10000:01:00"),
        ("10000:01:00", "10000:01:00"),
        ("0009:00", "0000:09:00"),
        ("0000:10:1c", "0000:10:1c"),
    ],
)
def test_spellings_of_one_address(spelling, key):
    assert pci_address(spelling) == key


@pytest.mark.parametrize("text", ["", "...", "PCI:0000:01:00", "0000:01:", "0000:01:00.8", "0000:1:2:3", "x" * 100])
def test_other_text_is_no_address(text):
    assert pci_address(text) is None
