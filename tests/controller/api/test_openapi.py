"""/openapi.json says what the interface does: valid, complete, and true of real answers."""

import re
from pathlib import Path
from typing import Any

from controller.pages.pages import FORMS, SHOWS
from tests.controller.house import batch, event, house, uuid


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(each) for each in node.values()))
    return set().union(*(references(each) for each in node)) if isinstance(node, list) else set()


async def document(folder: Path) -> Any:
    async with house(folder) as home:
        return await home.call("GET", "/openapi.json", Any)


async def test_every_reference_resolves(tmp_path: Path) -> None:
    page = await document(tmp_path)
    known = {f"#/components/schemas/{name}" for name in page["components"]["schemas"]}
    assert references(page["paths"]) | references(page["components"]) <= known


async def test_operations_have_unique_names_and_declare_their_path_parts(tmp_path: Path) -> None:
    page = await document(tmp_path)
    names = []
    for path, operations in page["paths"].items():
        for operation in operations.values():
            names.append(operation["operationId"])
            declared = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path)), path
            assert {"200", "201"} & operation["responses"].keys(), path
    assert len(names) == len(set(names))


async def test_every_route_of_the_interface_is_documented(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        page = await home.call("GET", "/openapi.json", Any)
        served = {
            (route.method.lower(), route.resource.canonical)
            for route in home.inside.app(None).router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
    written = {(method, path) for path, operations in page["paths"].items() for method in operations}
    apart = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/static/{name}", *SHOWS, *FORMS}
    assert {each for each in served if each[1] not in apart} == written


async def test_answers_have_the_properties_that_are_written(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        page = await home.call("GET", "/openapi.json", Any)
        schemas = page["components"]["schemas"]
        for path, name in (("fleet", "Fleet"), (f"gpus/{uuid(0)}", "GpuView")):
            answer = await home.get(path)
            assert set(schemas[name]["required"]) <= answer.keys() <= schemas[name]["properties"].keys()
        (stored,) = await home.get("events")
        assert stored.keys() <= schemas["Event"]["properties"].keys()
