"""One thread's way into NVML: each call is announced in the call table, and errors come back by name.

Runs in the child process only. ``api`` is the module ``pynvml`` of nvidia-ml-py, or what stands in for it.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from agent.calls import CallSlot
from agent.sources.child import CallFailed
from agent.sources.nvml_errors import ERROR_NAMES


class Caller:
    """Calls NVML by function name, from the one thread that owns the slot."""

    def __init__(self, api: Any, slot: CallSlot) -> None:
        self.api = api
        self._slot = slot
        self._functions: dict[str, Callable[..., int]] = {}

    def __call__(self, name: str, *arguments: Any, allowed_s: float = 0.0) -> Any:
        """The value of nvidia-ml-py's function. ``allowed_s``: how long it waits by intent. Raises CallFailed."""
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

    def raw(self, name: str, *arguments: Any) -> None:
        """The library's own function, for what is read each second: ctypes arguments in, a fifth of the time.

        Raises CallFailed.
        """
        function = self._functions.get(name) or self._find(name)
        self._slot.begin(name)
        code = function(*arguments)
        self._slot.end()
        if code:
            raise CallFailed(name, error_name(code))

    def _find(self, name: str) -> Callable[..., int]:
        try:
            function: Callable[..., int] = getattr(self.api.nvmlLib, name)
        except AttributeError as error:  # a library older than the call
            raise CallFailed(name, "FUNCTION_NOT_FOUND") from error
        self._functions[name] = function
        return function


def address(handle: Any) -> int | None:
    """What tells two handles apart: each look-up gives another object for the same GPU."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def error_name(code: int) -> str:
    """The NVML name of a return code, as it is written everywhere here."""
    return ERROR_NAMES.get(code, "UNKNOWN")


def text(value: str | bytes) -> str:
    """nvidia-ml-py gave bytes in its older releases."""
    return value.decode() if isinstance(value, bytes) else value
