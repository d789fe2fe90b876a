"""Versions that are known to go wrong."""

import pytest

from vocab.catalogue.versions import known_bad


@pytest.mark.parametrize(("driver", "bad"), [("525.60.13", True), ("525.105.17", False), ("570.86.15", True),
                                             ("570.133.20", False),
                                             ("535.54.03", True), ("535.104.05", False), ("535.183.01", False),
                                             ("550.54.15", False), ("470.82.01", False), (None, False)])  # fmt: skip
def test_a_driver_is_bad_from_its_first_release_to_the_one_that_fixed_it(driver: str | None, bad: bool) -> None:
    assert bool(known_bad(driver)) == bad


def test_firmware_of_another_release_is_bad_and_unknown_firmware_is_not() -> None:
    assert [bad.what for bad in known_bad("565.57.01", "550.54.15")] == [
        "GSP firmware of another release than the driver"
    ]
    assert known_bad("565.57.01", "565.57.01") == known_bad("565.57.01") == known_bad(None, "550.54.15") == ()


def test_each_names_its_source() -> None:
    assert all(bad.source.startswith(("github.com/", "docs.nvidia.com/")) for bad in known_bad("570.86.15", "1.2"))
