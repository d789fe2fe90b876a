"""A device that opens is there. If it does not, its tool may be missing: only the hardware's own words count."""

from agent.diag.verdict import Subject, Verdict, passed, problem, unknown
from vocab.catalogue.cuda import Blame, error_in
from vocab.diag import Opened, Unmeasured

LOST_WORDS = "GPU is lost"
CHECK = "diag_open"  # whichever test met it: a pass of this one takes it back


def verdict(figures: Opened, subject: Subject) -> Verdict:
    """It opened."""
    del subject
    return passed(figures.board)


def unmeasured(figures: Unmeasured) -> Verdict:
    """Of any test: a missing tool, a busy device or too little memory says nothing of the GPU.

    "No device" and "busy or unavailable" are what a missing permission and a compute mode give too.
    """
    if figures.error is not None and LOST_WORDS in figures.error:
        return problem(figures.why, "gpu_lost", check=CHECK)
    error = error_in(figures.error)
    if error is not None and error.blame is Blame.GPU:
        return problem(figures.why, "ecc_uncorrectable", {"cuda_error": error.code}, check=CHECK)
    return unknown(figures.why)
