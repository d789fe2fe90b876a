from pathlib import Path

from engine.files.phases import PHASES, Phases
from engine.loading import load_model
from tests.engine.replica import replica, settings


def test_a_phase_inside_of_another_is_counted_once() -> None:
    phases = Phases()
    with phases.of("place"):
        with phases.of("read"):
            sum(range(200_000))
        outer = phases.seconds["read"]
    assert outer > 0
    assert 0 <= phases.seconds["place"] < outer


def test_every_phase_of_loading_has_its_time(tiny_model: Path) -> None:
    found = load_model(settings(tiny_model)).phases
    assert set(found) == set(PHASES)
    assert [phase for phase in PHASES if not found[phase]] == ["graph"]  # of which a CPU has none


async def test_what_ended_and_what_was_stepped_is_logged_for_who_asks(tiny_model: Path, caplog) -> None:  # type: ignore[no-untyped-def]
    caplog.set_level("INFO")
    async with replica(settings(tiny_model, log_requests=True, log_steps=True)) as here:
        await here.complete(list(range(5, 45)), max_tokens=4, ignore_eos=True)
        await here.complete(list(range(5, 45)), max_tokens=4, ignore_eos=True)
        _, text, _ = await here.call("GET", "/metrics")
    lines = [record for record in caplog.records if record.message == "request"]
    assert [(line.finish, line.prompt_tokens, line.cached_tokens, line.tokens) for line in lines] == [
        ("length", 40, 0, 4),
        ("length", 40, 32, 4),
    ]
    assert all(line.ttft_ms > 0 and line.tpot_ms > 0 for line in lines)
    assert next(record.spans for record in caplog.records if record.message == "step") == 1
    assert b'corral_engine_load_phase_seconds{phase="canary"}' in text
