"""``python -m dashboards [ROOT]``: write the generated files of the repository anew, the same bytes each time."""

import sys
from pathlib import Path

try:
    from dashboards import corral, fleet, gpu, metrics_page, node, recorded, reliability, serving, versions
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: it comes with what the tests need; run: make dashboards")

BOARDS = (fleet, node, gpu, serving, reliability, versions, corral)

REPOSITORY = Path(__file__).parents[1]


def generated() -> dict[str, bytes]:
    """What is generated, by its path in the repository."""
    return {
        **{f"dashboards/json/{each.UID}.json": each.board() for each in BOARDS},
        "dashboards/rules/boards.yml": recorded.rules_file().encode(),
        "docs/metrics.md": metrics_page.page().encode(),
    }


def main(root: Path) -> None:
    """Write every generated file under ``root``."""
    for name, content in generated().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(path)  # noqa: T201 - a command says what it wrote


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY)
