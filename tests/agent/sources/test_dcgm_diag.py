"""DCGM's diagnostics as checks, on the stand-ins of both releases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sources.dcgm.diag import diagnose
from agent.sources.dcgm.sight import DcgmSettings
from tests.fakes.dcgm import board
from tests.fakes.dcgm.host import FakeHost
from tests.fakes.dcgm.place import Place, stand_in
from vocab.observations import Check

PASS, SKIP, WARN, FAIL = 0, 1, 2, 3


@pytest.fixture(params=[3, 4])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with stand_in(request.param) as found:
        yield found


def host_of(place: Place) -> FakeHost:
    assert place.host is not None
    return place.host


def settings(place: Place) -> DcgmSettings:
    return DcgmSettings(engine=place.address, bindings=place.bindings)


def by_name(checks: tuple[Check, ...]) -> dict[tuple[str, str | None], Check]:
    return {(check.check, check.gpu): check for check in checks}


async def test_each_test_of_each_gpu_is_a_check(place: Place) -> None:
    host_of(place).diag = [
        ("memory", 0, PASS, 0), ("memory", 1, FAIL, 52), ("pcie", 0, SKIP, 0), ("pcie", 1, WARN, 46),
    ]  # fmt: skip
    found = by_name(await diagnose(settings(place), "medium"))
    assert found["dcgm_diag_memory", board.uuid(0)].result == "pass"
    failed = found["dcgm_diag_memory", board.uuid(1)]
    assert (failed.result, failed.code, failed.fatal) == ("problem", "DCGM_FR_FAULTY_MEMORY", True)
    assert found["dcgm_diag_pcie", board.uuid(0)].result == "unknown"
    warned = found["dcgm_diag_pcie", board.uuid(1)]
    assert (warned.result, warned.code, warned.fatal) == ("problem", "DCGM_FR_PCIE_WIDTH", False)


async def test_only_the_named_gpus_are_tested(place: Place) -> None:
    host = host_of(place)
    host.diag = [("memory", 2, PASS, 0)]
    await diagnose(settings(place), "quick", [board.uuid(2)])
    assert [numbers for session in host.sessions for numbers in session.groups.values()] == [[2]]


async def test_a_diagnostic_that_is_not_installed_is_unknown_and_no_fault(place: Place) -> None:
    (check,) = await diagnose(settings(place), "quick")
    assert (check.result, check.gpu) == ("unknown", None)
    assert (check.text or "").startswith("NVVS_BINARY_NOT_FOUND: ")


async def test_without_dcgm_the_outcome_is_unknown(tmp_path: Path) -> None:
    (check,) = await diagnose(DcgmSettings(bindings=tmp_path), "quick")
    assert check.result == "unknown"
    assert (check.text or "").startswith("BINDINGS_NOT_FOUND: ")
