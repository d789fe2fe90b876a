"""The API server, spoken to in plain JSON: objects come as they are, and unknown fields survive.

kubernetes-asyncio knows how to log in (kubeconfig, service account, exec plug-ins, renewed tokens); it is imported here
and nowhere else, once Kubernetes is configured.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

import aiohttp
import msgspec

from controller.adapters.config import KubernetesConfig
from vocab.errors import ConfigError, CorralError, Refused, Unreachable

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json"
ANSWER_S = 30.0
DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

Body = dict[str, Any]


class Failure(CorralError):
    """The server said no in its own words. Who asked decides what that means."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """One API server; opened by its first call. Raises ConfigError if its client is not installed."""

    def __init__(self, config: KubernetesConfig) -> None:
        if find_spec("kubernetes_asyncio") is None:
            raise ConfigError("[kubernetes] needs kubernetes-asyncio: pip install 'corral[kubernetes]'")
        self._config = config
        self._client: Any = None

    async def _open(self) -> Any:
        from kubernetes_asyncio import client, config

        try:
            if self._config.kubeconfig is not None:
                return await config.new_client_from_config(self._config.kubeconfig, self._config.context)
            settings = client.Configuration()
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call] # as it comes
            return client.ApiClient(settings)
        except (config.ConfigException, OSError) as error:
            raise Unreachable(f"kubernetes: cannot log in: {error}") from error

    async def call(self, method: str, path: str, body: Any = None, *, kind: str = JSON, **query: str) -> Body:
        """Send ``body`` and give the answer. Raises Failure (its status and words) or Unreachable."""
        response = await self._send(method, path, body, kind, query, ANSWER_S)
        async with response:
            raw = await response.read()
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise Failure(response.status, _message(raw))
        return _decoded(raw)

    async def watch(self, path: str, silence_s: float, **query: Any) -> AsyncIterator[Body]:
        """The events of a watch until the server ends it. Raises Failure or Unreachable."""
        response = await self._send("GET", path, None, JSON, {"watch": "true", **query}, silence_s)
        rest = b""
        try:
            async with response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise Failure(response.status, _message(await response.read()))
                async for chunk in response.content.iter_any():  # an object may be longer than a line is allowed to be
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in filter(None, lines):
                        yield _decoded(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"kubernetes: the watch of {path} broke off: {error or type(error).__name__}") from error

    async def _send(self, method: str, path: str, body: Any, kind: str, query: Body, timeout_s: float) -> Any:
        if self._client is None:
            self._client = await self._open()
        try:
            return await self._client.call_api(
                path,
                method,
                query_params=[(name, str(value)) for name, value in query.items()],
                header_params={"Accept": JSON, "Content-Type": kind},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=timeout_s,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"kubernetes: {path} does not answer: {error or type(error).__name__}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def told(failure: Failure, act: str) -> CorralError:
    """What a failure means for who wanted to ``act``: not allowed is final, all else may pass."""
    if failure.status in DENIED:
        return Refused(f"kubernetes may not be asked to {act}: {failure}; give the controller the role in rbac.yaml")
    return Unreachable(f"kubernetes did not {act} ({failure.status}): {failure}")


def _decoded(raw: bytes) -> Body:
    try:
        return msgspec.json.decode(raw or b"{}", type=Body)
    except msgspec.DecodeError as error:
        raise Unreachable(f"kubernetes answers what is no object: {raw[:80]!r}") from error


def _message(raw: bytes) -> str:
    try:
        return str(msgspec.json.decode(raw, type=Body).get("message", ""))
    except msgspec.DecodeError:
        return raw[:200].decode(errors="replace")
