"""The import law: vocab imports nothing of ours, wire only vocab, the three programs only these two."""

import ast
from collections.abc import Iterator
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


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


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


def test_no_circles_between_the_packages_of_a_room() -> None:
    for room in MAY_IMPORT:
        graph: dict[str, set[str]] = {}
        for path in files(room):
            package = ".".join(path.relative_to(ROOT).parent.parts)
            graph.setdefault(package, set()).update(
                target
                for name in imports(path)
                if name.startswith(f"{room}.")
                for target in [_package_of(name)]
                if target != package
            )
        assert not _circle(graph), room


def _package_of(module: str) -> str:
    here = ROOT.joinpath(*module.split("."))
    return module if here.is_dir() else module.rpartition(".")[0]


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
