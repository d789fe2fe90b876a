"""NVIDIA's Python bindings of DCGM: where its packages put them, and how they are imported. Child process only.

No package index carries them: they come with DCGM and match the library of its release. Only two of their
modules are used, ``dcgm_agent`` and ``dcgm_structs``, which have kept functions and structs from 3.1 to 4.6.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import msgspec

from agent.calls import CallSlot
from agent.sources.child import CallFailed
from agent.sources.dcgm.names import status_name

FOLDERS: tuple[Path, ...] = (
    Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),  # DCGM 4
    Path("/usr/local/dcgm/bindings/python3"),  # DCGM 3
    Path("/usr/local/dcgm/bindings"),
)
MODULE = "dcgm_agent"


def find(wanted: Path | None) -> Path | None:
    """The folder of the bindings: the wanted one or where DCGM puts them; None if they are not there."""
    places = (wanted,) if wanted else FOLDERS
    return next((folder for folder in places if (folder / f"{MODULE}.py").is_file()), None)


class Bindings(msgspec.Struct, frozen=True):
    """The two modules."""

    agent: Any
    structs: Any


def load(folder: Path) -> Bindings:
    """Import them and load libdcgm. Raises CallFailed."""
    sys.path.append(str(folder))  # last: the folder also has modules of common names
    try:
        bindings = Bindings(importlib.import_module(MODULE), importlib.import_module("dcgm_structs"))
    except (ImportError, SyntaxError) as error:
        sys.stderr.write(f"corral-agent: {folder}: {error}\n")
        raise CallFailed(f"import {MODULE}", "BINDINGS_UNUSABLE") from error
    try:
        bindings.structs._dcgmInit()  # noqa: SLF001  # the bindings' own way to load the library
    except bindings.structs.DCGMError as error:
        raise CallFailed("_dcgmInit", status_name(error.value)) from error
    return bindings


class Caller:
    """Calls functions of ``dcgm_agent`` by name, from the one thread that owns the slot."""

    def __init__(self, bindings: Bindings, slot: CallSlot) -> None:
        self.structs = bindings.structs
        self._agent = bindings.agent
        self._slot = slot

    def has(self, name: str) -> bool:
        """Whether these bindings know the function."""
        return hasattr(self._agent, name)

    def exported(self, name: str, *arguments: Any) -> None:
        """A function of the library that ``dcgm_agent`` does not wrap. Raises CallFailed."""
        self._slot.begin(name, 0.0)
        try:
            self.structs._dcgmCheckReturn(self.structs._dcgmGetFunctionPointer(name)(*arguments))  # noqa: SLF001  # the bindings' own way
        except self.structs.DCGMError as error:
            raise CallFailed(name, status_name(error.value)) from error
        finally:
            self._slot.end()

    def __call__(self, name: str, *arguments: Any, allowed_s: float = 0.0) -> Any:
        """The function's value. ``allowed_s``: how long it waits by intent. Raises CallFailed."""
        if not self.has(name):
            raise CallFailed(name, "FUNCTION_NOT_FOUND")
        self._slot.begin(name, allowed_s)
        try:
            return getattr(self._agent, name)(*arguments)
        except self.structs.DCGMError as error:
            raise CallFailed(name, status_name(error.value)) from error
        finally:
            self._slot.end()
