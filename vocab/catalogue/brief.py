"""A code in a few lines of Markdown: what it means, how bad it is, what is advised, what ends it. Pure.

They stand above a runbook, which is about more codes than one; of a code that needs nothing they are all there is.
"""

import re

from vocab.catalogue.codes import ROWS, row
from vocab.catalogue.persistence import Outlives
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Scope
from vocab.runbooks import OTHERWISE, runbook
from vocab.states import ClearsOn

_NUMBERED = re.compile(r"s?xid:\d{1,9}")  # there are more than the catalogue has
ENDS = {
    ClearsOn.SIGNAL: "when its signal no longer shows it",
    ClearsOn.RESET: "with a reset of the GPU",
    ClearsOn.REBOOT: "with a boot of the node",
    ClearsOn.PERSON: "when a person says `corral release`",
}


def is_code(name: str) -> bool:
    """Whether this is a code: one of the catalogue, or any number of an Xid or SXid."""
    return name in ROWS or _NUMBERED.fullmatch(name) is not None


def needs_nothing(code: str) -> bool:
    """Whether no GPU or node has to be repaired for it: at most a program has to be started again."""
    known = ROWS.get(code)
    if known is None or known.condition or runbook(code) != OTHERWISE:
        return False
    return known.recovery in {Recovery.NONE, Recovery.RESTART_APP} and known.outlives is Outlives.NOTHING


def brief(code: str) -> str:
    """Heading and lines."""
    known = row(code)
    certain = "; certain: the agent fences the GPU at once" if known.certain else ""
    advice = known.recovery.value.replace("_", " ")
    lines = [f"{known.severity.value}; advice: {advice}; hits: {known.scope.value}{certain}"]
    ends = f"ends {ENDS[known.clears_on]}"
    lines.append(ends if known.condition else "opens no condition: nothing is held for it alone")
    lines += [f"stays behind: {known.remains}"] if known.remains else []
    if needs_nothing(code):
        lines.append(_nothing(known))
    return f"# {code}: {known.title}\n\n" + "".join(f"- {line}\n" for line in lines)


def _nothing(known: CodeRow) -> str:
    if known.scope is Scope.PROCESS:
        told = "**no action on the hardware**: a program made it, or was hit by it; look at that program"
        return f"{told}. If it comes again on one GPU with many programs, look at the GPU: `corral diag GPU`"
    return "**no action**: it is a notice"
