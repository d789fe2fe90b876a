import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from engine.metrics import EngineMetrics
from tests.engine.replica import replica, settings
from vocab.metrics import ENGINE

VLLM = json.loads((Path(__file__).parent.parent / "data" / "vllm_metrics.json").read_text())["metrics"]


def test_names_types_labels_and_buckets_are_those_of_vllm() -> None:
    for row in ENGINE:
        if row.name.startswith("vllm:"):
            theirs = VLLM[row.name]
            assert row.kind.value == theirs["type"], row.name
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


async def test_steps_are_counted_from_shapes_and_an_unknown_board_has_no_mfu(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.complete(list(range(5, 45)), max_tokens=20, ignore_eos=True)
        await here.complete(list(range(5, 45)), max_tokens=20, ignore_eos=True)
        _, text, _ = await here.call("GET", "/metrics")
        beat = here.service.beat()
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
