"""Errors speak to who typed a command."""

import pytest

from corral.words import in_commands


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("there is no GPU 'x'; /api/v1/gpus lists them", "there is no GPU 'x'; `corral status` lists them"),
        ("/api/v1/actions?state=open lists them", "`corral status` lists them"),
        ("order it with POST /api/v1/holds", "order it with `corral hold`"),
        ("/api/v1/policy/adoptions lists them", "`corral policy history` lists them"),
        ("http://h:7400/api/v1/fleet does not answer: refused", "http://h:7400 does not answer: refused"),
        ("http://h:7400/api/v1/fleet?a=b answered 503: later", "http://h:7400 answered 503: later"),
        ("POST /api/v1/agent/batch is for nodes", "the controller is for nodes"),
        ("/healthz is another thing", "/healthz is another thing"),
    ],
)
def test_a_path_of_the_api_becomes_the_command_that_does_it(told: str, shown: str) -> None:
    assert in_commands(told) == shown
