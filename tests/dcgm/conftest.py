"""Each test runs on the stand-ins of both releases, and on a real engine where the environment names one."""

from collections.abc import Iterator

import pytest

from tests.fakes.dcgm.place import Place, is_named, real, stand_in

PLACES = ("stand-in 3", "stand-in 4", *(("real",) if is_named() else ()))


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "real":
        yield real()
        return
    with stand_in(int(request.param[-1])) as found:
        yield found
