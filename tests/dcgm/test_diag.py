"""DCGM's quick diagnostic through the bindings: whatever is installed, it ends in checks."""

from agent.sources.dcgm.diag import diagnose
from agent.sources.dcgm.sight import DcgmSettings
from tests.fakes.dcgm.place import Place


async def test_the_quick_diagnostic_ends_in_checks_and_a_missing_one_in_unknown(place: Place) -> None:
    found = await diagnose(DcgmSettings(engine=place.address, bindings=place.bindings), "quick")
    assert found
    assert {check.result for check in found} <= {"pass", "problem", "unknown"}
    assert all(check.check.startswith("dcgm_diag") for check in found)
    if len(found) == 1:
        assert found[0].result == "unknown"
        assert (found[0].text or "").startswith("NVVS_BINARY_NOT_FOUND: ")
