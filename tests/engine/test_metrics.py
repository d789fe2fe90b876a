import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.beat import beat_of
from engine.metrics import EngineMetrics
from tests.engine.replica import events, replica, settings
from vocab.metrics import ENGINE

VLLM = json.loads((Path(__file__).parent.parent / "data" / "vllm_metrics.json").read_text())["metrics"]


def test_names_types_labels_and_buckets_are_those_of_vllm() -> None:
    for row in ENGINE:
        if row.name.startswith("vllm:"):
            theirs = VLLM[row.name]
            assert row.kind.value == theirs["type"], row.name
            if row.name.endswith("_info"):  # names of vLLM's inside that mean nothing here are left out
                assert set(row.labels) <= set(theirs["labels"]), row.name
            else:
                assert sorted(row.labels) == sorted(theirs["labels"]), row.name
            assert set(theirs.get("buckets", ())) <= set(row.buckets), row.name


def test_no_name_of_vllm_is_missing() -> None:
    assert set(VLLM) <= {row.name for row in ENGINE}


def test_counters_are_there_before_the_first_event(tiny_model: Path) -> None:
    text = EngineMetrics(settings(tiny_model, gpus=("GPU-1",))).render()[0].decode()
    assert 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 0.0' in text
    assert 'corral_engine_gpu_info{gpu="GPU-1",replica="r1"} 1.0' in text


async def test_a_request_moves_what_it_should(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.complete([5, 6, 7], max_tokens=4, ignore_eos=True)
        _, text, _ = await here.call("GET", "/metrics")
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }
    assert found["vllm:prompt_tokens_total"] == 3
    assert found["vllm:generation_tokens_total"] == 4
    assert found["vllm:time_to_first_token_seconds_count"] == 1
    assert found["vllm:inter_token_latency_seconds_count"] == 3
    assert found["vllm:e2e_request_latency_seconds_count"] == 1
    assert found["vllm:request_generation_tokens_sum"] == 4
    assert found["corral_engine_steps_total"] == 4
    assert found["corral_engine_ready"] == 1
    assert found["vllm:num_requests_running"] == 0


async def test_the_cache_is_described_and_drafts_are_counted_by_place(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, speculative_tokens=2, kv_mib=1)) as here:
        await here.complete([5, 6, 7] * 9, max_tokens=60, ignore_eos=True)
        found = {
            (sample.name, sample.labels.get("position")): sample
            for family in text_string_to_metric_families((await here.call("GET", "/metrics"))[1].decode())
            for sample in family.samples
        }
        blocks = here.service.loaded.scheduler.pool.free
    cache = found["vllm:cache_config_info", None].labels
    assert (cache["block_size"], cache["num_gpu_blocks"], cache["cache_dtype"]) == ("16", str(blocks), "float32")
    by_place = [found["vllm:spec_decode_num_accepted_tokens_per_pos_total", place].value for place in ("0", "1")]
    assert sum(by_place) == found["vllm:spec_decode_num_accepted_tokens_total", None].value
    assert by_place[0] >= by_place[1]


@pytest.mark.parametrize("temperature", [0, 1])
async def test_logits_that_are_no_numbers_are_counted_and_end_nothing(tiny_model: Path, temperature: int) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.complete([5, 6], max_tokens=2)
        model = here.service.loaded.runner._model
        inner = model.logits
        model.logits = lambda hidden: inner(hidden) * float("nan")
        status, body, _ = await here.complete([5, 6], max_tokens=4, ignore_eos=True, temperature=temperature)
        model.logits = inner
        assert (status, body["usage"]["completion_tokens"]) == (200, 4)
        assert (await here.complete([5, 6], max_tokens=2))[0] == 200
        text = (await here.call("GET", "/metrics"))[1].decode()
    assert 'vllm:corrupted_requests_total{engine="0",model_name="tiny"} 1.0' in text


async def test_usage_tells_what_of_the_prompt_was_cached(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        found = [(await here.complete(list(range(5, 45)), max_tokens=3, ignore_eos=True))[1]["usage"] for _ in range(2)]
        body = {"model": "tiny", "prompt": list(range(5, 45)), "max_tokens": 3, "stream": True,
                "stream_options": {"include_usage": True}}  # fmt: skip
        async with here.session.post(f"{here.base}/v1/completions", json=body) as answer:
            *_, last, _ = await events(answer)
    assert [usage["prompt_tokens_details"] for usage in (*found, last["usage"])] == [
        {"cached_tokens": cached} for cached in (0, 32, 32)
    ]


async def test_steps_are_counted_from_shapes_and_an_unknown_board_has_no_mfu(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.complete(list(range(5, 45)), max_tokens=20, ignore_eos=True)
        await here.complete(list(range(5, 45)), max_tokens=20, ignore_eos=True)
        _, text, _ = await here.call("GET", "/metrics")
        beat = beat_of(here.service)
    found = {
        sample.name + str(sample.labels.get("source", "")): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    assert found["vllm:estimated_flops_per_gpu_total"] > 0
    assert found["vllm:estimated_read_bytes_per_gpu_total"] > found["vllm:estimated_write_bytes_per_gpu_total"] > 0
    assert found["vllm:prompt_tokens_by_source_totallocal_cache_hit"] == 32
    assert found["vllm:prompt_tokens_by_source_totallocal_compute"] == 48
    assert found["corral_engine_measured_copy_bytes_per_second"] > 0
    assert found["corral_engine_step_over_floor_ratio"] > 0
    assert not {"corral_engine_mfu_ratio", "corral_engine_mbu_ratio", "corral_engine_ridge_flops_per_byte_ratio"} & set(
        found
    )
    assert beat.over_floor > 0
