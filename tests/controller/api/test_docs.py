"""docs/api.md names exactly the routes that are served, and every kind of line and observation."""

import re
from pathlib import Path
from typing import Any, get_args

import msgspec

from controller.store.change import KIND
from tests.controller.house import house
from tests.controller.process import ROOT
from vocab.observations import AnyObservation

PAGE = (ROOT / "docs" / "api.md").read_text()


async def test_every_route_is_in_the_page_and_no_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        served = await home.call("GET", "/openapi.json", Any)
    routes = {(method.upper(), path) for path, operations in served["paths"].items() for method in operations}
    assert set(re.findall(r"^\| `(GET|POST|DELETE) (/\S+)` \|", PAGE, re.MULTILINE)) == routes


def test_every_kind_of_line_has_a_row() -> None:
    assert set(KIND.values()) <= set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE))


def test_every_kind_of_observation_is_named() -> None:
    recordings = PAGE.partition("### Recordings")[2]
    kinds = {msgspec.inspect.type_info(kind).tag for kind in get_args(AnyObservation)}  # type: ignore[union-attr]
    assert kinds <= set(re.findall(r"`(\w+)`", recordings))
