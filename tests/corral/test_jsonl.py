"""JSON Lines that any reader can cut."""

import json

from corral.jsonl import one_line


def test_a_document_is_one_line_whatever_ends_lines_elsewhere():
    line = one_line(json.dumps({"text": "a\x85b\u2028c\u2029d é"}, ensure_ascii=False).encode())
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"text": "a\x85b\u2028c\u2029d é"}
