"""One thread's way into NVML: each call is announced in the call table, and errors come back by name.

Runs in the child process only. ``api`` is the module ``pynvml`` of nvidia-ml-py, or what stands in for it.
"""

from typing import Any

from agent.calls import CallSlot
from agent.sources.child import CallFailed
from agent.sources.nvml_errors import ERROR_NAMES


class Caller:
    """Calls NVML by function name, from the one thread that owns the slot."""

    def __init__(self, api: Any, slot: CallSlot) -> None:
        self.api = api
        self._slot = slot

    def __call__(self, name: str, *arguments: Any, allowed_s: float = 0.0) -> Any:
        """The function's value. ``allowed_s``: how long it waits by intent. Raises CallFailed."""
        function = getattr(self.api, name, None)
        if function is None:  # an nvidia-ml-py older than the call
            raise CallFailed(name, "FUNCTION_NOT_FOUND")
        self._slot.begin(name, allowed_s)
        try:
            return function(*arguments)
        except self.api.NVMLError as error:
            raise CallFailed(name, error_name(error.value)) from error
        finally:
            self._slot.end()


def error_name(code: int) -> str:
    """The NVML name of a return code, as it is written everywhere here."""
    return ERROR_NAMES.get(code, "UNKNOWN")


def text(value: str | bytes) -> str:
    """nvidia-ml-py gave bytes in its older releases."""
    return value.decode() if isinstance(value, bytes) else value
