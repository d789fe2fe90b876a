"""What can go wrong, as one tree. Each class answers: what does the caller do now?

CorralError                 say it to the user and stop what depends on it
|- ConfigError              fix the named key and start again                          exit 2
|- InputError               fix the named file, line or argument                       exit 2
|- Unreachable              the other side does not answer: retry with back-off        exit 3
|  `- Deposed               another controller decides now: ask it
|- Refused                  the other side understood and said no: do not repeat       exit 4
|  `- StaleOrder            a newer order or epoch exists: drop this one
|- SourceDown               a source of readings is gone: report unknown, go on
|- SpoolFull                the disk cannot take more: fold, keep critical events
`- ModelError               this model cannot be served: name the file and the reason  exit 2
"""

from typing import ClassVar


class CorralError(Exception):
    """Base of all errors that Corral raises on purpose; ``exit_code`` is that of the command line."""

    exit_code: ClassVar[int] = 1


class ConfigError(CorralError):
    """A configuration key, value or unit is wrong."""

    exit_code = 2


class InputError(CorralError):
    """A file, line, request or argument that a person or program gave us is wrong."""

    exit_code = 2


class Unreachable(CorralError):
    """The other process does not answer; trying again later may help, after ``retry_after_s`` if it said so."""

    exit_code = 3

    def __init__(self, message: str = "", *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Deposed(Unreachable):
    """Another controller decides now; what was under way here is not stored."""


class Refused(CorralError):
    """The other process answered no; trying the same again will not help."""

    exit_code = 4


class StaleOrder(Refused):
    """An order whose token is older than one already seen."""


class SourceDown(CorralError):
    """A source of observations cannot be read: what it would tell is unknown."""


class SpoolFull(CorralError):
    """The spool's disk budget is used up."""


class ModelError(CorralError):
    """A model file is missing, damaged or of a kind that the engine cannot run."""

    exit_code = 2
