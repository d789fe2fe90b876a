import msgspec
import pytest

from agent.adapters.adapter import Start, flags
from agent.adapters.engines import ENGINES, adapter, by_command, by_metrics, flag
from agent.adapters.group import Group
from tests.fakes.vllm.options import parse
from vocab.errors import ConfigError
from vocab.messages import ReplicaSpec
from vocab.observations import Member


def start(engine, *, gpus=("A",), model="/m/llama", **options):
    members = tuple(Member(node="n1", gpu=gpu, rank=rank) for rank, gpu in enumerate(gpus))
    spec = ReplicaSpec(
        replica="r-1", deployment="chat", members=members, model=model, engine=engine, drain_s=90.0, options=options
    )
    return Start(spec=spec, port=7431, beat="/run/beat", cpu=False, program=("python", "-m", "engine"))


def argv(engine, **more):
    return adapter(engine).argv(start(engine, **more))


def test_vllm_is_started_with_its_own_flags_and_time_to_drain():
    words = argv("vllm", gpus=("A", "B"), max_model_len=4096, enable_prefix_caching=True, enforce_eager=False)
    assert words[:3] == ("vllm", "serve", "/m/llama")
    assert flag(words, "--served-model-name") == "chat"
    assert (flag(words, "--host"), flag(words, "--port")) == ("127.0.0.1", "7431")
    assert (flag(words, "--tensor-parallel-size"), flag(words, "--shutdown-timeout")) == ("2", "90")
    assert flag(words, "--max-model-len") == "4096"
    assert "--enable-prefix-caching" in words
    assert "--enforce-eager" not in words


def test_the_fake_vllm_takes_what_a_vllm_is_started_with():
    given = parse(argv("vllm", gpus=("A", "B"))[1:])
    assert (given.port, given.served_model_name, given.tensor_parallel_size) == (7431, "chat", 2)


def test_sglang_is_started_with_its_metrics():
    words = argv("sglang")
    assert words[:3] == ("python3", "-m", "sglang.launch_server")
    assert "--enable-metrics" in words
    assert flag(words, "--tp-size") is None


def test_our_own_engine_keeps_its_flags():
    words = argv("torch", gpus=("A", "B"), max_running=4)
    assert words[:3] == ("python", "-m", "engine")
    assert (flag(words, "--beat"), flag(words, "--gpus"), flag(words, "--max-running")) == ("/run/beat", "A,B", "4")


def test_a_command_is_words_with_what_stands_in_braces_filled_in_and_no_shell():
    words = argv("command", command=["srv", "--port={port}", "{model}", "$HOME; rm"], model="/m/x y")
    assert words == ("srv", "--port=7431", "/m/x y", "$HOME; rm")


@pytest.mark.parametrize(
    "command", [None, [], "srv --port 1", ["srv", "{color}"], ["srv", "{port.real.x}"], ["{"], [1]]
)
def test_a_command_that_cannot_be_filled_in_is_refused_with_the_key(command):
    with pytest.raises(ConfigError, match=r"options\.command"):
        argv("command", command=command)


def test_an_unknown_engine_is_refused_with_those_that_there_are():
    with pytest.raises(ConfigError, match="command, sglang, torch, vllm"):
        adapter("tgi")


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("vllm:num_requests_running 0\n", "vllm"),
        ("# HELP x y\nsglang:token_usage 0\n", "sglang"),
        ("vllm:num_requests_running 0\ncorral_engine_steps_total 1\n", "torch"),
        ("http_requests_total 3\n# vllm:x\n", "command"),
        ("", "command"),
    ],
)
def test_a_running_engine_is_known_by_its_metrics(text, engine):
    assert by_metrics(text).name == engine


def test_an_engine_is_known_by_the_name_of_its_program():
    assert by_command(("/opt/bin/vllm", "serve", "x")) is ENGINES["vllm"]
    assert by_command(("train.py", "vllm")) is None
    assert by_command(()) is None


ILLEGAL = "(Worker) CUDA error: an illegal memory access was encountered"
NO_ROOM = "ValueError: No available memory for the cache blocks."
LAST = "RuntimeError: Engine core initialization failed. See root cause above."


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["x", ILLEGAL, LAST], ILLEGAL),
        ([NO_ROOM, LAST], NO_ROOM),
        (["INFO ready", "", "killed "], "killed"),
        ([], None),
    ],
)
def test_the_line_that_says_why_it_ended_is_found_above_the_last(lines, told):
    assert adapter("vllm").last_words(lines) == told


def test_a_false_or_missing_flag_is_left_out():
    assert flags([("--a", 1), ("--b", None), ("--c", False), ("--d", True)], {"e_f": "g"}) == (
        "--a",
        "1",
        "--d",
        "--e-f",
        "g",
    )


def part(engine, rank, **options):
    """The start of one of two nodes with two GPUs each."""
    whole = start(engine, gpus=("A", "B"), **options)
    group = Group(rank=rank, nodes=2, gpus=4, leader="10.0.0.1", port=29_500)
    return adapter(engine).argv(msgspec.structs.replace(whole, group=group))


def test_vllm_on_two_nodes_is_tensor_parallel_within_and_pipeline_parallel_between_them():
    leads, other = part("vllm", 0), part("vllm", 1)
    for rank, words in enumerate((leads, other)):
        assert (flag(words, "--tensor-parallel-size"), flag(words, "--pipeline-parallel-size")) == ("2", "2")
        assert (flag(words, "--nnodes"), flag(words, "--node-rank")) == ("2", str(rank))
        assert (flag(words, "--master-addr"), flag(words, "--master-port")) == ("10.0.0.1", "29500")
    assert "--headless" in other
    assert "--headless" not in leads, "it alone serves"


def test_what_a_deployment_says_of_its_division_comes_last_and_counts():
    words = part("vllm", 0, tensor_parallel_size=4, pipeline_parallel_size=1)
    assert words.index("--pipeline-parallel-size") < words.index("4")
    assert [words[n + 1] for n, word in enumerate(words) if word == "--tensor-parallel-size"] == ["2", "4"]


def test_sglang_on_two_nodes_is_tensor_parallel_over_all_gpus():
    words = part("sglang", 1)
    assert (flag(words, "--tp-size"), flag(words, "--nnodes"), flag(words, "--node-rank")) == ("4", "2", "1")
    assert flag(words, "--dist-init-addr") == "10.0.0.1:29500"


def test_a_command_on_two_nodes_knows_its_rank_and_its_leader():
    words = part("command", 1, command=["srv", "{rank}/{world_size}", "{leader}:{leader_port}", "{gpus}"])
    assert words == ("srv", "1/2", "10.0.0.1:29500", "A,B")


def test_our_own_engine_refuses_to_be_a_part_and_says_what_to_do():
    with pytest.raises(ConfigError, match="nodes_per_replica = 1"):
        part("torch", 0)
