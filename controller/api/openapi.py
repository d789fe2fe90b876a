"""/openapi.json, made from the routes and the schemas of their types: it cannot say what the code does not do."""

import re
from typing import Any

import msgspec

from controller.api.forms import ErrorBody, Json
from controller.api.route import Route

_PART = re.compile(r"\{(\w+)\}")
_ERRORS = {
    400: "The request is wrong; the message names the field",
    401: "A token is needed",
    403: "A foreign page may not ask this",
    404: "There is no such thing",
    409: "Understood and refused; the message says why",
    503: "The store cannot take it now; try again later",
}


def document(routes: list[Route], version: str) -> Json:
    """The whole document, OpenAPI 3.1."""
    kinds = [kind for route in routes for kind in (route.answer, route.body, route.query) if kind is not None]
    kinds.append(ErrorBody)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    queries = {route.query.__name__ for route in routes if route.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Corral controller", "version": version, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route, schema_of: dict[str, Any], components: Json) -> Json:
    operation: Json = {"operationId": route.name, "summary": route.summary}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PART.findall(route.path)
    ]
    if route.query is not None:
        parameters += _query(components[route.query.__name__])
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(schema_of[repr(route.body)])}
    operation["responses"] = _responses(route, schema_of)
    return operation


def _query(schema: Json) -> list[Json]:
    required = set(schema.get("required", ()))
    return [
        {"name": name, "in": "query", "required": name in required, "schema": each}
        for name, each in schema["properties"].items()
    ]


def _responses(route: Route, schema_of: dict[str, Any]) -> Json:
    if route.stream:
        content: Json = {"text/event-stream": {"schema": {"type": "string"}}}
    else:
        content = _json(schema_of[repr(route.answer)])
    answers: Json = {str(route.status): {"description": route.summary, "content": content}}
    for status in sorted({400, 401, *route.errors}):
        answers[str(status)] = {"description": _ERRORS[status], "content": _json(schema_of[repr(ErrorBody)])}
    return answers


def _json(schema: Any) -> Json:
    return {"application/json": {"schema": schema}}
