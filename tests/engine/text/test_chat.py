import pytest

from engine.text.chat import ChatTemplate
from tests.engine.tiny import TEMPLATE
from vocab.errors import InputError

MESSAGES = [{"role": "user", "content": "hi"}]


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, {"eos_token": "<|end|>"}, "here")


def test_messages_become_a_prompt_that_asks_for_the_answer() -> None:
    assert template(TEMPLATE).render(MESSAGES) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_a_template_sees_the_names_of_the_special_tokens() -> None:
    assert template("{{ eos_token }}").render(MESSAGES) == "<|end|>"


def test_what_a_template_refuses_is_the_fault_of_the_request() -> None:
    with pytest.raises(InputError, match="roles must take turns"):
        template("{{ raise_exception('roles must take turns') }}").render(MESSAGES)


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__bases__[0].__subclasses__() }}",
        "{{ messages.append(1) }}",
    ],
)
def test_a_template_cannot_leave_its_sandbox(source: str) -> None:
    try:
        found = template(source).render(MESSAGES)
    except InputError:
        found = ""
    assert found == ""


def test_json_keeps_its_letters() -> None:
    assert template("{{ messages[0].content | tojson }}").render([{"role": "user", "content": "é<"}]) == '"é<"'
