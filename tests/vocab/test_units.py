"""Which units a site has given leave for."""

import pytest

from vocab.units import is_allowed, template_of


@pytest.mark.parametrize(
    ("unit", "template"),
    [
        ("vllm@0.service", "vllm@.service"),
        ("vllm@llama-3.3.service", "vllm@.service"),
        ("a@b@c.service", "a@.service"),
        ("vllm.service", None),
        ("vllm@.service", None),
    ],
)
def test_an_instance_has_a_template(unit, template):
    assert template_of(unit) == template


def test_a_unit_is_allowed_by_its_name_or_by_its_template():
    allowed = ("vllm@.service", "llama.service")
    assert is_allowed("vllm@0.service", allowed)
    assert is_allowed("llama.service", allowed)
    assert not is_allowed("vllm@.service", allowed)
    assert not is_allowed("llama@0.service", allowed)
    assert not is_allowed("vllm@0.socket", allowed)
    assert not is_allowed("vllm.service", allowed)
