"""JSON Lines: one line is one line for every reader, also for those that take U+2028 for the end of a line."""

_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def one_line(document: bytes) -> str:
    """An encoded document as text, with its newline. A kernel line may hold any character."""
    text = document.decode()
    return (text if text.isascii() else text.translate(_ENDS)) + "\n"
