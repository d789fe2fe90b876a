"""The import law: vocab imports nothing of ours, wire only vocab, the three programs only these two."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("vocab", "wire", "agent", "controller", "engine", "corral", "dashboards", "alerts", "tests")
MAY_IMPORT = {
    "vocab": {"vocab"},
    "wire": {"wire", "vocab"},
    "agent": {"agent", "wire", "vocab"},
    "controller": {"controller", "wire", "vocab"},
    "engine": {"engine", "wire", "vocab"},
}
TORCH_FREE = ("vocab", "wire", "agent", "controller", "corral", "dashboards", "engine/gateway")
SQL_FREE = ("vocab", "wire", "agent", "engine", "corral", "dashboards")
PURE = ("vocab", "agent/probes", "agent/judge", "agent/kernel", "controller/core")
IO_MODULES = {"asyncio", "socket", "subprocess", "time", "random", "os", "pathlib", "logging", "aiohttp", "threading"}
CLOCK = {"vocab/clock.py"}  # the one place of vocab that reads time, behind the Clock protocol


@cache
def imports(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append(node.module)
    return tuple(found)


def files(place: str) -> list[Path]:
    return sorted((ROOT / place).rglob("*.py"))


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_room_imports_only_what_the_law_allows(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(room)
        for name in imports(path)
        if name.split(".")[0] in ROOMS and name.split(".")[0] not in MAY_IMPORT[room]
    ]
    assert files(room)
    assert not wrong


@pytest.mark.parametrize("place", TORCH_FREE)
def test_only_the_engine_imports_torch(place: str) -> None:
    assert not [path for path in files(place) if any(name.split(".")[0] == "torch" for name in imports(path))]


@pytest.mark.parametrize("place", SQL_FREE)
def test_only_the_controller_imports_sqlalchemy(place: str) -> None:
    banned = {"sqlalchemy", "alembic", "aiosqlite"}
    assert not [path for path in files(place) if any(name.split(".")[0] in banned for name in imports(path))]


@pytest.mark.parametrize("place", PURE)
def test_pure_rooms_do_no_io(place: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(place)
        for name in imports(path)
        if name.split(".")[0] in IO_MODULES and str(path.relative_to(ROOT)) not in CLOCK
    ]
    assert not wrong


def test_the_engine_core_stands_alone() -> None:
    names = {name for path in files("engine/core") for name in imports(path)}
    assert {name for name in names if name.split(".")[0] in ROOMS and not name.startswith("engine.core")} <= {
        "vocab.errors"
    }


def test_no_circles_within_a_room() -> None:
    """Neither between the folders of a room nor between its modules."""
    for room in MAY_IMPORT:
        folders: dict[str, set[str]] = {}
        modules: dict[str, set[str]] = {}
        for path in files(room):
            here = _module(path)
            targets = {name for name in map(_existing, imports(path)) if name.startswith(room) and name != here}
            modules.setdefault(here, set()).update(targets)
            folders.setdefault(_folder(here), set()).update({_folder(name) for name in targets} - {_folder(here)})
        assert not _circle(folders), room
        assert not _circle(modules), room


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _existing(name: str) -> str:
    return (
        name
        if ROOT.joinpath(*name.split(".")).with_suffix(".py").exists() or _is_package(name)
        else name.rpartition(".")[0]
    )


def _is_package(name: str) -> bool:
    return ROOT.joinpath(*name.split("."), "__init__.py").exists()


def _folder(module: str) -> str:
    """The folder of a module; a module that lies directly in its room stands for itself."""
    return module if module.count(".") <= 1 else module.rpartition(".")[0] if not _is_package(module) else module


def _circle(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        found = next((circle for target in sorted(graph.get(name, ())) if (circle := visit(target, (*path, name)))), [])
        done.add(name)
        return found

    return next((circle for name in sorted(graph) if (circle := visit(name, ()))), [])


def test_no_wait_for() -> None:
    """asyncio.wait_for may swallow a cancellation on Python 3.11; asyncio.timeout does not."""
    ours = [path for room in MAY_IMPORT for path in files(room)]
    assert not [path for path in ours if "asyncio.wait_for(" in path.read_text()]
