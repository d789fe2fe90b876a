"""docs/signals.md is written from the catalogue."""

from pathlib import Path

from vocab.catalogue.page import page

SIGNALS = Path(__file__).resolve().parents[3] / "docs" / "signals.md"


def test_page_is_not_stale():
    assert SIGNALS.read_text() == page(), "run: python -m vocab.catalogue.page > docs/signals.md"
