"""Shapes of well-known models by name, for plans made where the model is not on disk. From their config.json files."""

from engine.core.architecture import Architecture, Rope

# name: family, vocabulary, hidden, intermediate, layers, heads, kv heads, head size, positions, head is the embedding
_ROWS: tuple[tuple[str, str, int, int, int, int, int, int, int, int, bool], ...] = (
    ("smollm2-135m", "llama", 49152, 576, 1536, 30, 9, 3, 64, 8192, True),
    ("llama-2-7b", "llama", 32000, 4096, 11008, 32, 32, 32, 128, 4096, False),
    ("llama-2-13b", "llama", 32000, 5120, 13824, 40, 40, 40, 128, 4096, False),
    ("llama-2-70b", "llama", 32000, 8192, 28672, 80, 64, 8, 128, 4096, False),
    ("llama-3-8b", "llama", 128256, 4096, 14336, 32, 32, 8, 128, 8192, False),
    ("llama-3-70b", "llama", 128256, 8192, 28672, 80, 64, 8, 128, 8192, False),
    ("mistral-7b", "mistral", 32768, 4096, 14336, 32, 32, 8, 128, 32768, False),
    ("qwen2.5-7b", "qwen2", 152064, 3584, 18944, 28, 28, 4, 128, 32768, False),
    ("qwen3-0.6b", "qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, True),
    ("qwen3-8b", "qwen3", 151936, 4096, 12288, 36, 32, 8, 128, 40960, False),
    ("qwen3-14b", "qwen3", 151936, 5120, 17408, 40, 40, 8, 128, 40960, False),
    ("qwen3-32b", "qwen3", 151936, 5120, 25600, 64, 64, 8, 128, 40960, False),
)

KNOWN: dict[str, Architecture] = {
    name: Architecture(
        family=family,
        vocab=vocab,
        hidden=hidden,
        intermediate=intermediate,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        max_positions=positions,
        norm_eps=1e-5,
        rope=Rope(),
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
        tied=tied,
    )
    for name, family, vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, positions, tied in _ROWS
}
