from hypothesis import given, settings
from hypothesis.strategies import text

from agent.adapters.figures import Figures, figures
from agent.adapters.sglang import SGLANG
from agent.adapters.vllm import VLLM
from tests.fakes.vllm.meters import Meters

LABELS = '{engine="0",model_name="smol"}'


def test_the_figures_of_a_vllm_come_from_its_own_names():
    meters = Meters("smol")
    meters.set("num_requests_running", 3)
    meters.set("num_requests_waiting", 2)
    meters.set("kv_cache_usage_perc", 0.25)
    meters.add("generation_tokens_total", 40)
    meters.add("prompt_tokens_total", 2)
    for _ in range(7):
        meters.observe("iteration_tokens_total", 6)
    meters.add("request_success_total", 5, finished_reason="stop")
    meters.add("request_success_total", 1, finished_reason="error")
    meters.add("request_success_total", 9, finished_reason="abort")  # a client that went away
    expected = Figures(step=7, tokens=42, running=3, waiting=2, kv_ratio=0.25, ok=5, failed=1)
    assert figures(meters.render().decode(), VLLM.meters) == expected


def test_engines_of_one_server_are_added_up_and_the_fullest_cache_counts():
    rows = [("num_requests_running", 0, 2.0), ("num_requests_running", 1, 3.0)]
    rows += [("kv_cache_usage_perc", 0, 0.5), ("kv_cache_usage_perc", 1, 0.9)]
    text = "".join(f'vllm:{name}{{engine="{engine}",model_name="m"}} {value}\n' for name, engine, value in rows)
    assert figures(text, VLLM.meters) == Figures(running=5, kv_ratio=0.9)


def test_the_figures_of_an_sglang():
    text = "\n".join(
        f"sglang:{name}{LABELS} {value}"
        for name, value in (
            ("num_running_reqs", 1.0), ("num_queue_reqs", 4.0), ("token_usage", 0.5),
            ("realtime_tokens_total", 100.0), ("inter_token_latency_seconds_count", 12.0),
        )
    )  # fmt: skip
    assert figures(text, SGLANG.meters) == Figures(step=12, tokens=100, running=1, waiting=4, kv_ratio=0.5)


def test_an_older_vllm_names_its_cache_otherwise():
    assert figures(f"vllm:gpu_cache_usage_perc{LABELS} 0.5\n", VLLM.meters) == Figures(kv_ratio=0.5)


def test_tokens_that_are_counted_only_when_a_request_ends_are_no_sign_of_progress():
    text = f"vllm:request_generation_tokens_sum{LABELS} 900\nvllm:prompt_tokens_total{LABELS} 40\n"
    assert figures(text, VLLM.meters) == Figures()


def test_what_is_not_said_is_unknown_not_zero():
    assert figures("", VLLM.meters) == Figures()
    assert figures("# HELP x y\nother_total 3\n", VLLM.meters) == Figures()


def test_text_that_is_broken_says_nothing():
    assert figures(f"vllm:num_requests_running{LABELS} many\n", VLLM.meters) == Figures()
    assert figures('vllm:num_requests_running{engine="0 1.0\n', VLLM.meters) == Figures()


def test_no_number_is_not_a_number():
    assert figures(f"vllm:num_requests_running{LABELS} NaN\n", VLLM.meters) == Figures()


def test_a_name_that_only_begins_so_is_another():
    assert figures(f"vllm:num_requests_running_max{LABELS} 3\nxvllm:num_requests_running 4\n", VLLM.meters) == Figures()


@given(text(alphabet='{}=",\\ 0123456789.eNa+-_#\n\tä', max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_reading(rest):
    figures(f"vllm:num_requests_running{rest}\nvllm:num_requests_running{{{rest}", VLLM.meters)
    figures(f'vllm:num_requests_running{{a="{rest} 1\n', VLLM.meters)
