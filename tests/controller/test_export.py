"""/metrics: what is exported is in the catalogue, complete from the start, and readable by Prometheus."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from controller.export import GPU_STATES
from tests.controller.house import batch, event, house, uuid
from vocab.metrics import CONTROLLER
from vocab.states import Health, Phase, shown


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for each in found}


async def test_fleet_is_counted_as_the_view_has_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
        found = samples((await home.raw("GET", "/metrics"))[1])
    assert found["corral_gpus", (("state", "cordoned"),)] == 1
    assert found["corral_gpus", (("state", "healthy"),)] == 1
    assert found["corral_gpus", (("state", "lost"),)] == 0
    states = {labels: value for (name, labels), value in found.items() if name == "corral_gpu_state"}
    assert states == {
        (("gpu", uuid(0)), ("node", "n1"), ("state", "cordoned")): 1,
        (("gpu", uuid(1)), ("node", "n1"), ("state", "healthy")): 1,
    }
    assert found["corral_holds", (("owner", "operator"),)] == 1
    assert found["corral_node_info", (("level", "observe"), ("node", "n1"), ("virtual", "true"))] == 1
    assert found["corral_ingest_batches_total", (("outcome", "stored"),)] == 1
    assert found["corral_lines_total", (("kind", "event"),)] == 1
    assert found["corral_store_up", ()] == 1
    assert found["corral_paused", ()] == 0


async def test_malformed_batches_are_counted(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        headers = {"Content-Type": "application/json"}
        await home.raw("POST", "/api/v1/agent/batch", data=b"{", headers=headers)
        found = samples((await home.raw("GET", "/metrics"))[1])
    assert found["corral_ingest_batches_total", (("outcome", "malformed"),)] == 1


async def test_everything_exported_is_in_the_catalogue(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        text = (await home.raw("GET", "/metrics"))[1]
    names = {row.name for row in CONTROLLER}
    for family in text_string_to_metric_families(text):
        suffix = "_total" if family.type == "counter" else ""
        assert family.name + suffix in names
    assert all(len(row.labels) <= 6 for row in CONTROLLER)


def test_every_word_that_can_be_shown_for_a_gpu_is_a_state_of_the_metric() -> None:
    words = {
        shown(health=health, fresh=fresh, held=held, phase=phase)
        for health in Health
        for phase in Phase
        for fresh in (True, False)
        for held in (True, False)
    }
    assert words == set(GPU_STATES)
