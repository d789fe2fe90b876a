"""A BMC that speaks Redfish: one system with the power states and answers that DMTF's schema lets a BMC have.

What happens to its host is written down in ``resets``; what it says is chosen by its fields.
"""

import base64
from typing import Any

from aiohttp import web

SYSTEM = "/redfish/v1/Systems/1"
TARGET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
TASK = "/redfish/v1/TaskService/Tasks/7"
USER, PASSWORD = "corral", "s3cret"


def extended(message_id: str, message: str) -> dict[str, Any]:
    """An error as DSP0266 has it."""
    info = {
        "@odata.type": "#Message.v1_1_1.Message",
        "MessageId": message_id,
        "Message": message,
        "Severity": "Warning",
    }
    return {"error": {"code": "Base.1.8.GeneralError", "message": "see", "@Message.ExtendedInfo": [info]}}


class Bmc:
    """``answers``: statuses for the next resets (503 waits as ``retry_after`` says); then 204."""

    def __init__(self) -> None:
        self.state = "On"
        self.allowed: list[str] | None = ["On", "ForceOff", "ForceRestart", "PowerCycle"]
        self.by_action_info = False
        self.systems = [SYSTEM]
        self.answers: list[int] = []
        self.retry_after: str | None = "0"
        self.task_states: list[str] = []
        self.stays_on = False
        self.resets: list[str] = []
        self.asked = 0

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._gate])
        app.router.add_get("/redfish/v1/Systems", self._list)
        app.router.add_get(SYSTEM, self._system)
        app.router.add_get(f"{SYSTEM}/ResetActionInfo", self._info)
        app.router.add_post(TARGET, self._reset)
        app.router.add_get(TASK, self._task)
        return app

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked += 1
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if request.headers.get("Authorization") != expected:
            return web.json_response(extended("Base.1.8.NoValidSession", "no session"), status=401)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"Members": [{"@odata.id": each} for each in self.systems]})

    async def _system(self, _: web.Request) -> web.Response:
        action: dict[str, Any] = {"target": TARGET}
        if self.by_action_info:
            action["@Redfish.ActionInfo"] = f"{SYSTEM}/ResetActionInfo"
        elif self.allowed is not None:
            action["ResetType@Redfish.AllowableValues"] = self.allowed
        body = {"@odata.id": SYSTEM, "PowerState": self.state, "Actions": {"#ComputerSystem.Reset": action}}
        return web.json_response(body)

    async def _info(self, _: web.Request) -> web.Response:
        parameters = [{"Name": "ResetType", "Required": True, "AllowableValues": self.allowed}]
        return web.json_response({"Parameters": parameters})

    async def _reset(self, request: web.Request) -> web.Response:
        kind = (await request.json())["ResetType"]
        status = self.answers.pop(0) if self.answers else 204
        if status == 503:
            headers = {} if self.retry_after is None else {"Retry-After": self.retry_after}
            return web.json_response(
                extended("Base.1.8.ServiceTemporarilyUnavailable", "busy"), status=503, headers=headers
            )
        if status >= 400:
            told = extended("Base.1.8.ActionParameterNotSupported", f"{kind} is not supported in this state")
            return web.json_response(told, status=status)
        self.resets.append(kind)
        if not (kind == "ForceOff" and self.stays_on):
            self.state = "Off" if kind == "ForceOff" else "On"
        if status == 202:
            return web.json_response({"@odata.id": TASK, "TaskState": "New"}, status=202, headers={"Location": TASK})
        return web.Response(status=204) if status == 204 else web.json_response({}, status=status)

    async def _task(self, _: web.Request) -> web.Response:
        state = self.task_states.pop(0) if self.task_states else "Completed"
        runs = state in {"New", "Running"}
        body = {"TaskState": state, "Messages": [{"Message": f"the reset is {state}"}]}
        return web.json_response(body, status=202 if runs else 200)
