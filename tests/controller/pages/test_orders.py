"""The form before an order: what a link may fill in, and what only who reads it chooses."""

import msgspec
import pytest

from controller.api.forms import ApprovalBody, DrainBody, HoldBody, LiftBody
from controller.pages.orders import OF_THE_FORM, ORDERS


@pytest.mark.parametrize(
    ("name", "body"), [("hold", HoldBody), ("lift", LiftBody), ("drain", DrainBody), ("approve", ApprovalBody)]
)
def test_what_makes_an_order_harsher_is_a_box_on_the_page_and_comes_by_nobodys_link(
    name: str, body: type[msgspec.Struct]
) -> None:
    harsher = {field.name for field in msgspec.structs.fields(body) if field.type is bool}
    assert harsher <= OF_THE_FORM
    assert {box for box in ("force", "now") if getattr(ORDERS[name], box)} == harsher
