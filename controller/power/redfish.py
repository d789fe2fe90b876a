"""Redfish (DMTF DSP0266): a system's power by ``ComputerSystem.Reset``.

What a BMC allows is asked (``ResetType@Redfish.AllowableValues``, or its ``ActionInfo``). Real power has to go, for a
warm restart leaves a GPU that has fallen off its bus where it is: ``PowerCycle``, else ``ForceOff`` and ``On``.
"""

import asyncio
import base64
import ssl
from collections.abc import Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from controller.power.config import PowerConfig
from controller.power.secret import password
from vocab.errors import Refused, Unreachable

ANSWER_S = 30.0  # BMCs are slow: seconds are usual
BUSY_TRIES = 3
BUSY_S = 10.0  # after a 503 without Retry-After
BUSY_MOST_S = 60.0
OFF_S = 60.0  # a forced power-off takes seconds; past this it has not worked
TASK_S = 300.0
LOOK_S = 2.0
MOST_BYTES = 2**20
RUNS = frozenset({"New", "Starting", "Running", "Pending", "Suspended", "Interrupted"})  # TaskState of one not over
OFF_ON, CYCLE, ON = "ForceOff, On", "PowerCycle", "On"


class _Answer(msgspec.Struct, frozen=True):
    status: int
    body: dict[str, Any]
    location: str | None
    retry_s: float | None


class Redfish:
    """One node's BMC. ``base``: https://host of it."""

    def __init__(self, config: PowerConfig, base: str, *, look_s: float = LOOK_S, busy_s: float = BUSY_S) -> None:
        self._config = config
        self._base = base.rstrip("/")
        self._look_s = look_s
        self._busy_s = busy_s

    async def plan(self) -> str:
        """The reset types to send. Raises Unreachable or Refused."""
        async with self._session() as session:
            system = await self._system(session)
            allowed = await self._allowed(session, system)
        if system.get("PowerState") == "Off":
            return ON
        if "PowerCycle" in allowed:
            return CYCLE
        if {"ForceOff", "On"} <= set(allowed):
            return OFF_ON
        raise Refused(f"{self._base} allows {', '.join(allowed) or 'no resets'}: none takes the power away")

    async def cycle(self, means: str) -> None:
        """Send the planned reset types, one after the other."""
        async with self._session() as session:
            first, *rest = means.split(", ")
            await self._reset(session, first)
            for kind in rest:
                await self._until_off(session)
                await self._reset(session, kind)

    async def complete(self) -> None:
        """Switch it on, should it be off."""
        async with self._session() as session:
            if (await self._system(session)).get("PowerState") == "Off":
                await self._reset(session, ON)

    # -- what it asks ---------------------------------------------------------------------------------

    async def _system(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        path = self._config.system
        if path is None:
            members = _objects((await self._get(session, "/redfish/v1/Systems")).get("Members"))
            paths = [str(each["@odata.id"]) for each in members if "@odata.id" in each]
            if len(paths) != 1:
                raise Refused(f"{self._base} has {len(paths)} systems: name one with `system` in its [[power]]")
            path = paths[0]
        return await self._get(session, path)

    async def _allowed(self, session: aiohttp.ClientSession, system: dict[str, Any]) -> Sequence[str]:
        action = self._action(system)
        values = action.get("ResetType@Redfish.AllowableValues")
        info = action.get("@Redfish.ActionInfo")
        if values is None and isinstance(info, str):
            parameters = _objects((await self._get(session, info)).get("Parameters"))
            values = next((each.get("AllowableValues") for each in parameters if each.get("Name") == "ResetType"), None)
        return [str(value) for value in values] if isinstance(values, list) else []

    def _action(self, system: dict[str, Any]) -> dict[str, Any]:
        actions = system.get("Actions")
        action = actions.get("#ComputerSystem.Reset") if isinstance(actions, dict) else None
        if not isinstance(action, dict) or not isinstance(action.get("target"), str):
            raise Refused(f"{self._base}: its system has no action ComputerSystem.Reset")
        return action

    async def _until_off(self, session: aiohttp.ClientSession) -> None:
        try:
            async with asyncio.timeout(OFF_S):
                while (await self._system(session)).get("PowerState") != "Off":  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(self._look_s)
        except TimeoutError as error:
            raise Unreachable(f"{self._base}: the power is not off {OFF_S:g} s after ForceOff") from error

    # -- what it sends --------------------------------------------------------------------------------

    async def _reset(self, session: aiohttp.ClientSession, kind: str) -> None:
        target = self._action(await self._system(session))["target"]
        answer = await self._send(session, "POST", target, {"ResetType": kind})
        if answer.status == 202:
            await self._await_task(session, answer)

    async def _await_task(self, session: aiohttp.ClientSession, accepted: _Answer) -> None:
        """Follow a task to its end: by its monitor while that says 202, by the state of the task that it shows."""
        where = accepted.location or accepted.body.get("@odata.id")
        if not isinstance(where, str):
            return  # accepted, and nothing to follow: the node's boot will tell
        try:
            async with asyncio.timeout(TASK_S):
                while _runs(answer := await self._send(session, "GET", where)):  # noqa: ASYNC110 - nor does a task
                    await asyncio.sleep(self._look_s)
        except TimeoutError as error:
            raise Unreachable(f"{self._base}: its task has not ended within {TASK_S:g} s") from error
        state = answer.body.get("TaskState", "Completed")
        if state != "Completed":
            raise Refused(f"{self._base}: its task ended as {state}: {_told(answer.body)}")

    async def _get(self, session: aiohttp.ClientSession, path: str) -> dict[str, Any]:
        return (await self._send(session, "GET", path)).body

    async def _send(
        self, session: aiohttp.ClientSession, method: str, path: str, body: dict[str, str] | None = None
    ) -> _Answer:
        """One request; again while it is too busy (503: nothing was done). Raises Unreachable or Refused."""
        tries = 0
        while True:
            answer = await self._once(session, method, path, body)
            tries += 1
            if answer.status != 503 or tries == BUSY_TRIES:
                break
            wait_s = self._busy_s if answer.retry_s is None else answer.retry_s
            await asyncio.sleep(min(wait_s, BUSY_MOST_S))
        if answer.status in {401, 403}:
            raise Refused(f"{self._base} answered {answer.status}: user or password of its [[power]] may not do this")
        if answer.status == 503:
            raise Refused(f"{self._base} is too busy (503), asked {tries} times: {_told(answer.body)}")
        if answer.status >= 500:
            raise Unreachable(f"{self._base} answered {answer.status}: {_told(answer.body)}")
        if answer.status >= 300:
            raise Refused(f"{self._base} answered {answer.status}: {_told(answer.body)}")
        return answer

    async def _once(
        self, session: aiohttp.ClientSession, method: str, path: str, body: dict[str, str] | None
    ) -> _Answer:
        try:
            url = urljoin(f"{self._base}/", path)
            inside = urlsplit(url).netloc == urlsplit(self._base).netloc
        except ValueError as error:
            raise Refused(f"{self._base} points at {path[:200]!r}, which is no address") from error
        if not inside:
            raise Refused(f"{self._base} points at {url[:200]!r}: its password goes nowhere else")
        try:
            async with session.request(method, url, json=body, allow_redirects=False) as response:
                raw = await response.content.read(MOST_BYTES)
                asked = response.headers.get("Retry-After", "")
                return _Answer(
                    status=response.status,
                    body=_object(raw),
                    location=response.headers.get("Location"),
                    retry_s=float(asked) if asked.isdecimal() else None,
                )
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"{self._base} cannot be reached: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{self._base} does not answer: {error or type(error).__name__}") from error

    def _session(self) -> aiohttp.ClientSession:
        tls: ssl.SSLContext | bool = True
        if self._config.ca_file is not None:
            try:
                tls = ssl.create_default_context(cafile=self._config.ca_file)
            except OSError as error:
                raise Refused(f"ca_file {self._config.ca_file} cannot be used: {error}") from error
        secret = f"{self._config.user}:{password(self._config.password_path)}".encode()
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=aiohttp.ClientTimeout(total=ANSWER_S),
            headers={
                "Accept": "application/json",
                "OData-Version": "4.0",
                "Authorization": f"Basic {base64.b64encode(secret).decode()}",
            },
        )


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw or b"{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _runs(task: _Answer) -> bool:
    return task.status == 202 or task.body.get("TaskState") in RUNS


def _told(body: dict[str, Any]) -> str:
    """The messages of an error or a task, as a BMC tells them (``@Message.ExtendedInfo``)."""
    error = body.get("error", {})
    found = error.get("@Message.ExtendedInfo") if isinstance(error, dict) else None
    messages = _objects(found or body.get("Messages") or [error])
    told = [str(each["Message"]) for each in messages if each.get("Message")]
    plain = error.get("message") if isinstance(error, dict) else None
    return " ".join(told)[:300] or str(plain or "it did not say why")[:300]
