"""Whatever is sent to the interface, it answers as /openapi.json says: no 5xx, no undeclared answer.

The cases come from schemathesis, the same ones each time; the controller is the real one, on a free port.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from controller.deciding.mind import real_core
from tests.controller.house import batch, event, house, uuid

EXAMPLES = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 8}  # of each operation: half a minute of one core
OF_A_PROCESS = 3  # of an operation that starts a process each time
STARTS_ONE = {"/api/v1/policy/diffs"}
TIMEOUT_S = 60.0
LONGEST = 7_500  # bytes of a query: a request line over 8,190 is refused in plain text before any route sees it
LARGEST = 250_000  # bytes of a body: over 262,144 the answer is 413, which schemathesis takes for no refusal


class Served:
    """A controller in a thread of its own, with something in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self.url = self.token = ""
        self.page: Any = None

    async def _serve(self) -> None:
        token = self._folder / "token"
        token.write_text("s3cret\n")
        token.chmod(0o600)
        async with house(
            self._folder / "state", make_core=real_core, token_file=str(token), requests_per_s=0.0
        ) as home:
            await home.post("agent/batch", batch(event(1)))
            await home.post("holds", {"subject": {"gpu": uuid(1)}, "reason": "noise"})
            self.url, self.token = home.base, "s3cret"
            self.page = await home.call("GET", "/openapi.json", Any)
            self._ready.set()
            await self._stopped.wait()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(TIMEOUT_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(TIMEOUT_S)
        self._loop.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    made.start()
    yield made
    made.stop()


@pytest.mark.long
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_one_that_is_declared(served: Served, mode: GenerationMode) -> None:
    """Both of what fits the forms and of what does not."""
    schema = schemathesis.openapi.from_dict(served.page)
    headers = {"Authorization": f"Bearer {served.token}"}
    for result in schema.exclude(path="/api/v1/watch").get_all_operations():  # a stream does not end
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and not can_be_wrong(operation):
            continue
        begins = mode is GenerationMode.POSITIVE and operation.path in STARTS_ONE
        examples = OF_A_PROCESS if begins else EXAMPLES[mode]

        @settings(max_examples=examples, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def conforms(case: schemathesis.Case) -> None:
            if case.path == "/api/v1/agent/desired" and is_number(case.query.get("wait_s", 0.0)):
                case.query["wait_s"] = 0.0  # a long poll is not what is tested here
            assume(is_of_usual_size(case))
            case.call_and_validate(
                base_url=served.url, headers=headers, timeout=TIMEOUT_S, excluded_checks=[positive_data_acceptance]
            )

        conforms()


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ({}, {}, 200),
        ({"after": "0"}, {}, 200),
        ({"after": "999999999"}, {}, 200),
        ({}, {"Last-Event-ID": "1"}, 200),
        ({}, {"Last-Event-ID": "-1"}, 400),
        ({}, {"Last-Event-ID": "x" * 300}, 400),
        ({"after": "x"}, {}, 400),
        ({"after": "-1"}, {}, 400),
        ({"after": "9" * 40}, {}, 400),
    ],
)
def test_the_stream_answers_as_is_declared(
    served: Served, query: dict[str, str], headers: dict[str, str], status: int
) -> None:
    """It does not end, so only its beginning is read."""
    declared = served.page["paths"]["/api/v1/watch"]["get"]["responses"][str(status)]["content"]
    connection = HTTPConnection(served.url.removeprefix("http://"), timeout=TIMEOUT_S)
    known = {"Authorization": f"Bearer {served.token}", **headers}
    connection.request("GET", f"/api/v1/watch?{urlencode(query)}", headers=known)
    answer = connection.getresponse()
    assert answer.status == status
    assert str(answer.getheader("Content-Type")).partition(";")[0] in declared
    if status == 200:
        assert answer.readline() == b": open\n"
    connection.close()


def is_of_usual_size(case: schemathesis.Case) -> bool:
    query, body = urlencode(case.query, doseq=True), json.dumps(case.body, default=str)
    return len(query) < LONGEST and len(body) < LARGEST


def is_number(given: object) -> bool:
    try:
        float(str(given))
    except ValueError:
        return False
    return True


def can_be_wrong(operation: Any) -> bool:
    """Whether something of it has a form: texts can be anything."""
    return bool(operation.body) or any(
        parameter.definition["schema"].get("type") != "string" for parameter in operation.query
    )
