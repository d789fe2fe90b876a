"""Samples of one round travel together, and none waits for a GPU that does not answer."""

from agent.sources.nvml_rounds import Rounds
from vocab.observations import GpuSample


def sample(index: int, error: str | None = None) -> GpuSample:
    return GpuSample(at=0.0, index=index, error=error)


class Sent:
    def __init__(self) -> None:
        self.pieces: list[tuple[list[int | None], float]] = []
        self.rounds = Rounds(lambda samples, took: self.pieces.append(([one.index for one in samples], took)))


def test_a_round_is_sent_once_all_of_the_round_before_have_come() -> None:
    sent = Sent()
    for number in (1, 2):
        for index in range(3):
            sent.rounds.put(number, sample(index), took_s=0.1 * (index + 1))
    assert [indexes for indexes, _ in sent.pieces] == [[0], [1], [2], [0, 1, 2]]
    assert sent.pieces[-1][1] == 0.1 * 3


def test_the_next_round_sends_what_waited_for_a_gpu_that_hangs_and_awaits_fewer() -> None:
    sent = Sent()
    for index in range(3):
        sent.rounds.put(1, sample(index))
    sent.pieces.clear()
    for number in (2, 3):
        for index in (0, 1):  # the third hangs
            sent.rounds.put(number, sample(index))
    assert [indexes for indexes, _ in sent.pieces] == [[0, 1], [0, 1]]


def test_a_failed_read_is_not_held_back() -> None:
    sent = Sent()
    for index in range(3):
        sent.rounds.put(1, sample(index))
    sent.pieces.clear()
    sent.rounds.put(2, sample(0))
    sent.rounds.put(2, sample(1, error="GPU_IS_LOST"))
    assert [indexes for indexes, _ in sent.pieces] == [[0, 1]]
