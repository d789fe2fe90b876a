"""What all pages share: here, what a person is told when something takes too long."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from controller.door.access import Access
from controller.door.tokens import Tokens
from controller.pages.frame import Frame
from controller.pages.orders import Forms
from vocab.clock import VirtualClock


async def late(_: web.Request) -> web.StreamResponse:
    raise TimeoutError


@pytest.mark.parametrize(("method", "said"), [("GET", "not ready"), ("POST", "see the audit whether it was done")])
async def test_an_order_without_an_answer_may_have_been_carried_out_and_says_so(method: str, said: str) -> None:
    clock = VirtualClock()
    access = Access(None, Tokens(None, clock), certified=False, clock=clock)  # type: ignore[arg-type]  # no store is asked
    answer = await Frame("1", access, Forms([]), clock).page(late)(make_mocked_request(method, "/"))
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert said in (answer.text or "")
