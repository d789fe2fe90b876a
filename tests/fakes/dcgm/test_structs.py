"""The structs of the stand-in are as large as those of the real headers (3.1.8, 3.3.9, 4.0.0, 4.6.0)."""

from ctypes import sizeof
from typing import Any

import pytest

from tests.fakes.dcgm import structs


@pytest.mark.parametrize(
    ("struct", "size"),
    [
        (structs.EntityPair, 8),
        (structs.FieldValue1, 4120),
        (structs.FieldValue2, 4128),
        (structs.ConnectParameters, 16),
        (structs.VersionInfo, 516),
        (structs.Attributes, 5220),
        (structs.Policy, 144),
        (structs.PolicyResponse2, 32),
        (structs.health_response(64), 66_828),
        (structs.health_response(1024), 1_069_068),
    ],
)
def test_a_struct_has_the_size_of_the_real_one(struct: Any, size: int) -> None:
    assert sizeof(struct) == size


def test_a_number_read_as_a_text_fails_as_in_the_bindings() -> None:
    value = structs.FieldUnion(i64=0x7FFFFFFFFFFFFFF0)
    with pytest.raises(UnicodeDecodeError):
        _ = value.str
