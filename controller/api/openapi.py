"""/openapi.json, made from the routes and the schemas of their types: it cannot say what the code does not do."""

import re
from typing import Any

import msgspec

from controller.api.forms import Json
from controller.api.route import Route
from vocab.problems import KINDS, MEDIA_TYPE, Problem

_PART = re.compile(r"\{(\w+)\}")
_ALWAYS = (400, 401, 403, 429, 503)  # a wrong host, a token, its role, its rate, a store that is away
_BODY = (413, 415)
_STREAMED = {  # one server-sent event
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
    "required": ["data"],
}


def document(routes: list[Route], version: str) -> Json:
    """The whole document, OpenAPI 3.1."""
    kinds = [kind for route in routes for kind in (route.answer, route.body, route.query) if kind is not None]
    kinds.append(Problem)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    queries = {route.query.__name__ for route in routes if route.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Corral controller",
            "version": version,
            "summary": "A fleet of GPUs: what is seen, decided and done, and what people order",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route, schema_of: dict[str, Any], components: Json) -> Json:
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [_tag(route)],
        "description": f"Roles: {', '.join(sorted(route.may))}.",
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PART.findall(route.path)
    ]
    if route.query is not None:
        parameters += _query(components[route.query.__name__])
    if route.tagged:
        parameters.append(_header("If-None-Match", "the ETag of an answer that you have: 304 while it is the same"))
    if route.current is not None:
        parameters.append(_header("If-Match", "the ETag of what you saw: 412 if it is another by now"))
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(schema_of[repr(route.body)])}
    operation["responses"] = _responses(route, schema_of)
    return operation


def _tag(route: Route) -> str:
    if route.path.startswith("/sd/"):
        return "prometheus"
    first = route.path.removeprefix("/api/v1/").partition("/")[0]
    return "nodes and gateways" if first in {"agent", "gateway", "enroll"} else first


def _query(schema: Json) -> list[Json]:
    required = set(schema.get("required", ()))
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _said(each)}
        for name, each in schema["properties"].items()
    ]


def _said(schema: Json) -> Json:
    """A query's parameter without its null: that is said by leaving the parameter out."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if not choices:
        return schema
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _header(name: str, description: str) -> Json:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": {"type": "string"}}


def _responses(route: Route, schema_of: dict[str, Any]) -> Json:
    answers: Json = {str(route.status): _success(route, schema_of)}
    if route.status != 200 and route.query is not None and "dry_run" in route.query.__struct_fields__:
        answers["200"] = {**_success(route, schema_of), "description": "What it would lead to; nothing was done"}
    if route.tagged:
        answers["304"] = {"description": "You have it already", "headers": {"ETag": {"schema": {"type": "string"}}}}
    also = {*_ALWAYS, *route.errors}
    if route.body is not None:
        also.update(_BODY)
    if route.current is not None:
        also.add(412)
    problem = {MEDIA_TYPE: {"schema": schema_of[repr(Problem)]}}
    for status in sorted(also):
        answers[str(status)] = {"description": KINDS[status].title, "content": problem}
    return answers


def _success(route: Route, schema_of: dict[str, Any]) -> Json:
    if route.stream:
        return {"description": route.summary, "content": {route.media: {"schema": _STREAMED}}}
    schema = schema_of[repr(route.answer)]
    headers: Json = {}
    if route.paged:
        following = {"anyOf": [{"type": "string"}, {"type": "null"}]}
        page = {"type": "object", "required": ["items", "next"], "properties": {"items": schema, "next": following}}
        schema = {"anyOf": [schema, page]}  # bare, or with `cursor` a page
        headers["Link"] = {"description": "the next page, while there is one", "schema": {"type": "string"}}
    if route.tagged:
        headers["ETag"] = {"schema": {"type": "string"}}
    return {"description": route.summary, "content": _json(schema), **({"headers": headers} if headers else {})}


def _json(schema: Any) -> Json:
    return {"application/json": {"schema": schema}}
