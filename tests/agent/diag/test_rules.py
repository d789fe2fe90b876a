"""What may run where, what is read, when neighbours or heat end a run: all pure."""

import msgspec
import pytest

from agent.diag import plan
from agent.diag.heat import stop
from agent.diag.leave import Standing, hindrance, objection
from agent.diag.pace import Paces, Tokens, tokens_in
from agent.diag.readings import checks
from agent.sources.dcgm.diag import LEVELS
from tests.agent.diag.made import FIRST, H100, SECOND, sample
from vocab.catalogue.specs import pcie_bytes_per_s, spec_of
from vocab.diag import Grade
from vocab.readings import LinkReadings

EMPTY = {FIRST: (), SECOND: ()}


def standing(kept=(FIRST, SECOND), users=EMPTY, serving=()):
    return Standing(kept=frozenset(kept), users=users, serving=serving)


def test_each_grade_includes_those_before_it():
    quick, medium, burn = map(plan.tests_of, Grade)
    assert medium[: len(quick)] == quick
    assert burn[: len(medium)] == medium
    assert all(map(plan.is_harmless, quick))
    assert not any(map(plan.is_harmless, set(burn) - set(quick)))


def test_every_test_has_a_deadline_and_every_grade_a_level_of_dcgm():
    assert {test for grade in Grade for test in plan.tests_of(grade)} | {"allreduce"} == set(plan.DEADLINE_S)
    assert set(plan.DCGM_LEVELS.values()) <= set(LEVELS)


@pytest.mark.parametrize(
    ("grade", "how", "words"),
    [
        (Grade.QUICK, standing(kept=(), users={}, serving=("chat-0",)), None),
        (Grade.MEDIUM, standing(), None),
        (Grade.MEDIUM, standing(serving=("chat-0",)), None),
        (Grade.MEDIUM, standing(kept=(SECOND,)), "is in service"),
        (Grade.MEDIUM, standing(users={FIRST: ("chat-0",)}), "in use by chat-0"),
        (Grade.MEDIUM, standing(users={FIRST: None}), "is not known"),
        (Grade.MEDIUM, standing(users={}), "is not known"),
        (Grade.BURN, standing(), None),
        (Grade.BURN, standing(kept=(SECOND,)), "is in service"),
        (Grade.BURN, standing(serving=("chat-0",)), "drain the node"),
    ],
)
def test_a_grade_has_leave_or_a_reason(grade, how, words):
    why = objection(grade, (FIRST,), how)
    assert why is None if words is None else words in why


GIB = 2**30


@pytest.mark.parametrize(
    ("gpu_sample", "device", "words"),
    [
        (sample(memory_total_bytes=80 * GIB, memory_used_bytes=70 * GIB), "cuda", None),
        (sample(memory_total_bytes=80 * GIB, memory_used_bytes=79 * GIB), "cuda", "only 1024 MiB"),
        (sample(memory_total_bytes=80 * GIB, memory_used_bytes=79 * GIB), "cpu", None),
        (sample(mig_mode=1), "cuda", "MIG"),
        (sample(mig_mode=0), "cuda", None),
        (sample(error="GPU_IS_LOST"), "cuda", None),
        (None, "cuda", None),
    ],
)
def test_no_work_is_run_where_it_would_take_what_others_need(gpu_sample, device, words):
    why = hindrance(gpu_sample, device)
    assert why is None if words is None else words in why


def result_of(name, gpu_sample):
    return next(((c.result, c.code) for c in checks(gpu_sample, FIRST, "n1", 5.0) if c.check == name), None)


@pytest.mark.parametrize(
    ("gpu_sample", "name", "found"),
    [
        (sample(), "pcie", ("pass", None)),
        (sample(pcie_width=8), "pcie", ("problem", "pcie_width")),
        (sample(pcie_width=None), "pcie", ("unknown", None)),
        (sample(pcie_width=8, pcie_width_max=8), "pcie", ("pass", None)),  # a narrow slot
        (sample(ecc_uncorrectable=2), "ecc", ("problem", "ecc_uncorrectable")),
        (sample(remap_failed=1), "remap", ("problem", "remap_failed")),
        (sample(error="GPU_IS_LOST"), "presence", ("problem", "gpu_lost")),
        (sample(error="GPU_IS_LOST"), "pcie", None),
        (None, "presence", ("unknown", None)),
    ],
)
def test_what_was_read_is_checked(gpu_sample, name, found):
    assert result_of(name, gpu_sample) == found


UP, DOWN = LinkReadings(state=1), LinkReadings(state=0)


@pytest.mark.parametrize(
    ("board", "links", "found"),
    [
        (H100, (UP, UP), ("pass", None)),
        (H100, (UP, DOWN), ("problem", "nvlink_down")),
        (H100, (DOWN, DOWN), ("unknown", None)),  # given to a virtual machine alone
        (H100, (), ("unknown", None)),
        ("NVIDIA H100 NVL", (UP, DOWN), ("unknown", None)),  # its bridge wires some of them
        (None, (UP, DOWN), ("unknown", None)),
    ],
)
def test_a_link_that_is_down_is_a_problem_where_all_are_wired(board, links, found):
    read = msgspec.structs.replace(sample(), links={str(n): link for n, link in enumerate(links)})
    (check,) = [each for each in checks(read, FIRST, "n1", 5.0, board) if each.check == "links"]
    assert (check.result, check.code) == found


# -- neighbours -----------------------------------------------------------------------------------------


def counted(*tokens: tuple[float, float]) -> list[dict[str, Tokens]]:
    return [{"chat-0": Tokens(seconds, count)} for seconds, count in tokens]


def looks(*tokens: tuple[float, float]) -> list[str | None]:
    first, second, *rest = counted(*tokens)
    paces = Paces()
    paces.base(first)
    paces.base(second)
    return [paces.look(each) for each in rest]


def test_a_neighbour_that_is_six_per_cent_slower_twice_ends_the_run():
    assert looks((1.0, 100), (2.0, 200), (3.06, 300), (4.12, 400))[0] is None
    assert "chat-0 slowed down" in looks((1.0, 100), (2.0, 200), (3.06, 300), (4.12, 400))[1]


def test_one_slow_window_is_chance():
    assert looks((1.0, 100), (2.0, 200), (3.2, 300), (4.2, 400), (5.4, 500)) == [None, None, None]


def test_an_idle_neighbour_has_no_pace():
    assert looks((1.0, 100), (1.0, 100), (1.0, 100), (1.0, 100)) == [None, None]


def test_a_neighbour_that_begins_to_serve_meanwhile_is_compared_with_its_own_beginning():
    found = looks((1.0, 100), (1.0, 100), (2.0, 200), (3.2, 300), (4.4, 400))
    assert found[:2] == [None, None]
    assert found[2] is not None


def test_a_replica_that_starts_anew_counts_from_nothing():
    assert looks((9.0, 900), (10.0, 1000), (0.1, 10), (0.2, 20)) == [None, None]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'vllm:inter_token_latency_seconds_sum{a="m"} 1.5\nvllm:inter_token_latency_seconds_count{a="m"} 10.0\n',
            Tokens(1.5, 10.0),
        ),
        ("vllm:time_per_output_token_seconds_sum 2.0\nvllm:time_per_output_token_seconds_count 4\n", Tokens(2.0, 4.0)),
        ("vllm:num_requests_running 1\n", None),
        ("", None),
        ("vllm:inter_token_latency_seconds_sum{ 1.5\n", None),
    ],
)
def test_the_time_of_a_token_is_read_from_an_engines_metrics(text, found):
    assert tokens_in(text) == found


# -- heat -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu_sample", "code", "stops"),
    [
        (sample(temperature_c=80.0, clock_reasons=0x4), None, False),
        (sample(temperature_c=89.0), "thermal_slowdown", True),
        (sample(clock_reasons=0x40), "thermal_slowdown", True),
        (sample(clock_reasons=0x80), "power_brake", True),
        (sample(clock_reasons=0x08), None, True),
        (sample(temperature_c=None), None, True),
        (sample(error="GPU_IS_LOST"), None, True),
        (None, None, True),
    ],
)
def test_heat_and_blindness_end_a_burn(gpu_sample, code, stops):
    found = stop(gpu_sample)
    assert (found is not None) is stops
    assert found is None or found.code == code


# -- the table of boards --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("board", "memory"),
    [
        ("NVIDIA H200", 4.8e12),
        ("NVIDIA H200 NVL", 4.8e12),
        ("NVIDIA H100 80GB HBM3", 3.35e12),
        ("NVIDIA H100 PCIe", 2.0e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12),
        ("NVIDIA GB200", 8e12),
        ("NVIDIA B200", 7.7e12),
    ],
)
def test_a_board_is_known_by_its_name(board, memory):
    assert spec_of(board).memory_bytes_per_s == pytest.approx(memory)


@pytest.mark.parametrize("board", [None, "", "NVIDIA A10G", "NVIDIA L40", "NVIDIA H20", "NVIDIA GeForce RTX 4090"])
def test_a_board_that_is_not_listed_has_no_figures(board):
    assert spec_of(board) is None


def test_the_bandwidth_of_a_pcie_link():
    assert pcie_bytes_per_s(5, 16) == pytest.approx(63e9, rel=0.01)
    assert pcie_bytes_per_s(None, 16) is None
    assert pcie_bytes_per_s(5, None) is None
