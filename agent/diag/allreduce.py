"""The sum over several GPUs. A wrong one is nobody's in particular: the node's, and each GPU's own tests say more."""

from agent.diag.limits import board_of, compared
from agent.diag.verdict import Subject, Verdict, problem, unknown
from vocab.catalogue.specs import GB, Spec
from vocab.diag import Reduced

LEAST_RATIO = 0.4  # of one direction; NCCL's ring reaches 70 to 80 % within a node [H]


def verdict(figures: Reduced, subject: Subject) -> Verdict:
    """Bandwidth against NVLink's, where the name of the board tells that its GPUs are joined by it."""
    if figures.wrong_words:
        return problem(f"{figures.wrong_words} words of a sum over {figures.gpus} GPUs came out wrong")
    spec = board_of(subject, "cuda")
    if not isinstance(spec, Spec):
        return spec
    if not spec.nvlink_bytes_per_s:
        return unknown("the sum is right; whether NVLink joins these GPUs the board's name does not tell")
    one_way = spec.nvlink_bytes_per_s / 2
    return compared("NVLink", figures.bus_bytes_per_s, one_way, LEAST_RATIO, unit=GB, name="GB/s")
