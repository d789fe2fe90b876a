"""The prompts of the engine's oracle: two hundred texts of many kinds, the same at every call."""

from collections.abc import Iterator


def report(lines: int) -> str:
    """A long prompt: a made-up log of a machine room."""
    rooms = ("north", "south", "cellar", "attic")
    body = "\n".join(
        f"{hour % 24:02d}:{hour * 7 % 60:02d} room {rooms[hour % 4]}: fan {hour % 5 + 1} at {900 + hour * 13 % 400} rpm"
        f", air {18 + hour * 3 % 9}.{hour % 10} degrees, door {'open' if hour % 6 == 0 else 'shut'}"
        for hour in range(lines)
    )
    return f"The night watch wrote down every hour what the machines did.\n{body}\nIn short, the night was"


def chat(question: str) -> str:
    """A question as the model's template puts it."""
    return (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )


LONG: dict[str, tuple[str, int]] = {  # name: (text, tokens to generate)
    "capital": ("The capital of France is", 64),
    "one_word": ("Water", 48),
    "story": ("Once upon a time, in a village between two hills, a clockmaker found that her clocks", 96),
    "code": ('def fibonacci(n: int) -> int:\n    """Return the n-th Fibonacci number."""\n', 64),
    "unicode": ("Grüße aus Zürich: 東京の天気は晴れ 🌞 и тепло. Translation:", 64),
    "digits": ("Count on: 1, 2, 3, 5, 8, 13, 21, 34, 1999, 2026,", 48),
    "chat": (chat("Explain in two sentences why the sky is blue."), 96),
    "watch_short": (report(6), 64),
    "watch_long": (report(40), 64),
}

KINDS: dict[str, str] = {  # of the short ones; {} is a subject
    "fact": "The most important thing to know about {} is that",
    "open": "It was raining when they first spoke of {}, and",
    "list": "Shopping list for {}:\n1. bread\n2. salt\n3.",
    "ask": "Question: What is {}?\nAnswer:",
    "chat": "Give me one short piece of advice about {}.",
    "code": "# {}\nclass Thing:\n    def __init__(self, name):\n        self.name = name\n\n    def",
    "table": "name | kind | price\n{} | old | 12\n{} | new | 15\n",
    "again": "{}, {}, {}, {}, {},",
    "letter": "Dear Sir or Madam,\nI write to you because of {}.",
    "quote": 'She said: "I never cared for {}," but he',
}

SUBJECTS = (
    "bridges", "the moon", "winter wheat", "a broken clock", "prime numbers", "copper wire", "old maps", "bees",
    "the sea", "a railway station", "glass", "chess", "sourdough", "the number 42", "rivers in spring", "batteries",
    "a library at night", "violins", "snow on the roof", "grep",
)  # fmt: skip


def _short() -> Iterator[tuple[str, str]]:
    for kind, text in KINDS.items():
        for number, subject in enumerate(SUBJECTS):
            filled = text.replace("{}", subject)
            yield f"{kind}_{number}", chat(filled) if kind == "chat" else filled


def prompts(count: int = 200, tokens: int = 32) -> dict[str, tuple[str, int]]:
    """Name: (text, tokens to generate)."""
    short = list(_short())
    wanted = count - len(LONG)
    picked = [short[place * len(short) // wanted] for place in range(wanted)]
    return LONG | {name: (text, tokens) for name, text in picked}
