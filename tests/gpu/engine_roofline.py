"""The engine on a real GPU: right, and how near the roofs. One table, under eight minutes.

    python tests/gpu/engine_roofline.py [--rehearse]

Random weights in the shapes of Llama-3-8B and Qwen3-0.6B, so nothing has to be fetched. In this order:

    kernels   logits of the fused model beside plain PyTorch's, float32 and bfloat16; replayed decodes beside eager
    roofs     copy bandwidth and bf16 matmul rate of this board, measured here
    decode    8B shape, 512 tokens of context, batches of 1, 8, 64, 256: a step's time, its bytes against the copy roof
    prefill   8B shape, steps of 8,192 tokens: operations against the matmul roof
    serve     0.6B shape, 256 requests of 100 to 1,024 tokens in and out (nano-vllm's workload): tokens a second, with
              graphs and one step ahead, without either, and without both
    load      a 0.6B folder of bfloat16 safetensors from a warm page cache, to the first token

Needs a CUDA build of PyTorch and one free GPU with 40 GB. Without them it says that it was not run and exits with 0;
``--rehearse`` runs every line of it on the CPU in Triton's interpreter, in tiny shapes, and its figures mean nothing.
Exits with 1 if something is not right; speed is never a failure here.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
REHEARSE = "--rehearse" in sys.argv[1:]
if REHEARSE:
    os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are defined

import msgspec  # noqa: E402 - the tree is put on the path first
import torch  # noqa: E402 - as above

from engine.core.architecture import Architecture, Rope  # noqa: E402 - as above
from engine.core.attention_gather import GatherBackend  # noqa: E402 - as above
from engine.core.blocks import BlockPool  # noqa: E402 - as above
from engine.core.model import Forward, Model, weight_shapes  # noqa: E402 - as above
from engine.core.runner import Runner  # noqa: E402 - as above
from engine.core.sampler import sample  # noqa: E402 - as above
from engine.core.scheduler import Scheduler  # noqa: E402 - as above
from engine.core.sequence import Sampling, Span, Step  # noqa: E402 - as above
from engine.core.sequence import Sequence as Request  # noqa: E402 - as above
from engine.roofline import cost, shape_of  # noqa: E402 - as above
from tests.engine.reference import SAID, VOCAB, WISHES, pick, row  # noqa: E402 - as above
from tests.engine.reference import request as ruled  # noqa: E402 - as above

DEVICE = torch.device("cpu" if REHEARSE else "cuda")
LLAMA_8B = Architecture("llama", 128256, 4096, 14336, 32, 32, 8, 128, 8192, 1e-5, Rope(500_000.0))
QWEN3_06B = Architecture("qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, 1e-6, Rope(1e6), qk_norm=True, tied=True)
TINY = Architecture("qwen3", 256, 32, 48, 1, 2, 1, 16, 512, 1e-6, Rope(), qk_norm=True, tied=True)
if REHEARSE:
    LLAMA_8B = QWEN3_06B = TINY
BATCHES = (1, 2) if REHEARSE else (1, 8, 64, 256)
CONTEXT = 3 if REHEARSE else 512
PREFILL = 8 if REHEARSE else 8192
REQUESTS, SHORTEST, LONGEST = (2, 2, 4) if REHEARSE else (256, 100, 1024)
REPEAT = 1 if REHEARSE else 20


class Table:
    """Rows that are printed as they come, and whether something was wrong."""

    def __init__(self) -> None:
        self.wrong = False
        print("| what | how | result | of the roof |\n|---|---|---|---|")

    def row(self, what: str, how: str, result: str, share: float | None = None) -> None:
        print(f"| {what} | {how} | {result} | {'' if share is None else f'{share:.0%}'} |", flush=True)

    def check(self, what: str, how: str, good: bool, found: str) -> None:
        self.wrong |= not good
        self.row(what, how, f"{'right' if good else 'WRONG'}: {found}")


def wait() -> None:
    """Until the device has done what it was given."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def timed(run: Callable[[], object], repeat: int = REPEAT) -> float:
    """Seconds of one call, on average, after some that warm up."""
    for _ in range(min(repeat - 1, 2)):
        run()
    wait()
    began = time.perf_counter()
    for _ in range(repeat):
        run()
    wait()
    return (time.perf_counter() - began) / repeat


def weights_of(arch: Architecture, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Random, small enough that sums stay finite; norms near 1."""
    made = {}
    generator = torch.Generator(device=DEVICE).manual_seed(7)
    for name, shape in weight_shapes(arch).items():
        values = torch.empty(shape, dtype=dtype, device=DEVICE)
        if "norm" in name:
            made[name] = values.fill_(1.0)
        else:
            made[name] = values.normal_(0.0, shape[-1] ** -0.5, generator=generator)
    return made


class Engine:
    """A model of random weights with its cache, as the server would have it."""

    def __init__(self, arch: Architecture, dtype: torch.dtype, *, rows: int, tokens: int, longest: int,
                 graphs: bool, weights: dict[str, torch.Tensor] | None = None) -> None:  # fmt: skip
        from engine.cuda.attention import BLOCK, PagedBackend
        from engine.cuda.graphs import Capture, Eager, GraphedModel
        from engine.cuda.model import FusedModel

        self.arch = arch
        self.weights = weights or weights_of(arch, dtype)
        blocks = rows * -(-longest // BLOCK)
        self.backend = PagedBackend(
            layers=arch.layers, blocks=blocks, heads=arch.heads, kv_heads=arch.kv_heads, head_dim=arch.head_dim,
            most_tokens=max(tokens, rows), most_rows=rows, longest=longest, device=DEVICE, dtype=dtype,
        )  # fmt: skip
        self.model: Forward = FusedModel(arch, self.weights, longest)
        if graphs:
            hidden = torch.empty(0, arch.hidden, dtype=dtype, device=DEVICE)
            graphed = GraphedModel(self.model, self.backend, rows, hidden, Eager if REHEARSE else Capture())
            graphed.capture()
            self.model = graphed
        self.pool = BlockPool(blocks, BLOCK)
        self.runner = Runner(self.model, self.backend, DEVICE)


def request(name: str, prompt: int, most: int) -> Request:
    """A greedy one of random tokens that no prefix shares."""
    tokens = random.Random(name).choices(range(200), k=prompt)
    return Request(name, tokens, Sampling(max_tokens=most), 0.0)


def kernels(table: Table) -> None:
    """The fused model beside the plain one, and replayed steps beside eager ones."""
    arch = msgspec.structs.replace(QWEN3_06B, layers=min(4, QWEN3_06B.layers))
    for dtype, least in ((torch.float32, 0.99999), (torch.float16 if REHEARSE else torch.bfloat16, 0.995)):
        ours = Engine(arch, dtype, rows=4, tokens=128, longest=128, graphs=False)
        plain = Model(arch, ours.weights, 128)
        gather = GatherBackend(
            layers=arch.layers, blocks=ours.pool.count, heads=arch.heads, kv_heads=arch.kv_heads,
            head_dim=arch.head_dim, device=DEVICE, dtype=dtype,
        )  # fmt: skip
        reference = Runner(plain, gather, DEVICE)
        one, two = request("one", 41, 9), request("two", 23, 9)
        likeness = 1.0
        for chunks in ((40, 5), (1, 17), (1, 1)) if not REHEARSE else ((3, 2), (1, 1)):
            spans = []
            for sequence, count in zip((one, two), chunks, strict=True):
                ours.pool.grow(sequence, sequence.computed + count)
                spans.append(Span(sequence, sequence.computed, count, samples=1))
                sequence.computed += count
                if sequence.pending == 0:
                    sequence.append(5)
            step = Step(tuple(sorted(spans, key=lambda span: (span.count > 1, span.start))))
            pair = ours.runner.logits(step), reference.logits(step)
            likeness = min(likeness, float(torch.nn.functional.cosine_similarity(*pair).min()))
        table.check("kernels", str(dtype).removeprefix("torch."), likeness > least, f"cosine {likeness:.6f}")
    answers = []
    for graphs in (False, True):
        engine = Engine(arch, torch.float32, rows=4, tokens=128, longest=128, graphs=graphs)
        answers.append(serve(engine, [request(str(n), 3 + n, 3) for n in range(3)], rows=4, tokens=64, depth=1)[1])
    table.check("graphs", "tokens of 3 requests", answers[0] == answers[1], f"{sum(map(len, answers[0]))} tokens")


def sampling(table: Table) -> None:
    """Every rule of the sampler in one batch beside the same law in numpy; NaN; the time that the rules take."""
    rows = [row(ruled(generated=SAID, seed=seed, logprobs=2, **wish)) for seed in range(16) for wish in WISHES]
    logits = torch.randn(len(rows), VOCAB, generator=torch.Generator().manual_seed(0)) * 3
    law = [pick(logits[n].numpy(), one.sequence, one.position) for n, one in enumerate(rows)]
    found = sample(logits.to(DEVICE), rows).sent().host()
    right = sum(one == other for one, other in zip(found, law, strict=True))
    table.check("sampler", "all rules, float32", right >= 0.99 * len(rows), f"{right} of {len(rows)} rows")
    found = sample((logits * float("nan")).to(DEVICE), rows).sent().host()
    said = all(0 <= token < VOCAB and one.sequence.corrupt for token, one in zip(found, rows, strict=True))
    table.check("sampler", "logits that are no numbers", said, "a token of the vocabulary, and it is said")
    many = torch.randn(BATCHES[-1], QWEN3_06B.vocab, device=DEVICE).to(torch.bfloat16)
    for name, wish in (("greedy", {}), ("top-p", {"temperature": 1.0, "top_p": 0.9}), ("logprobs", {"logprobs": 5})):
        asked = [row(ruled(seed=n, **wish)) for n in range(len(many))]
        took = timed(partial(sample, many, asked))
        table.row("sampler", f"{name}, {len(many)} rows of {QWEN3_06B.vocab}", f"{took * 1e6:,.0f} us")


def roofs(table: Table) -> tuple[float, float]:
    """Bytes and bf16 operations a second that this board reaches."""
    size = 2**14 if REHEARSE else 2**30
    source, target = (torch.empty(size, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    copied = 2 * size / timed(lambda: target.copy_(source))
    side = 64 if REHEARSE else 8192
    a, b = (torch.randn(side, side, device=DEVICE).to(torch.bfloat16) for _ in range(2))
    multiplied = 2 * side**3 / timed(lambda: a @ b)
    table.row("roof", "copy", f"{copied / 1e9:,.0f} GB/s")
    table.row("roof", f"matmul {side}, bf16", f"{multiplied / 1e12:,.1f} TFLOP/s")
    return copied, multiplied


def steps(table: Table, copied: float, multiplied: float) -> None:
    """Decodes and prefills of the 8B shape."""
    dtype = torch.float16 if REHEARSE else torch.bfloat16
    shape = shape_of(LLAMA_8B, 2, 2)
    weights = weights_of(LLAMA_8B, dtype)
    longest = CONTEXT + 64
    for graphs in (True, False):
        engine = Engine(LLAMA_8B, dtype, rows=max(BATCHES), tokens=1, longest=longest, graphs=graphs, weights=weights)
        for batch in BATCHES:
            requests = [request(f"{batch}/{n}", CONTEXT, 9) for n in range(batch)]
            for one in requests:
                engine.pool.grow(one, CONTEXT)
            step = Step(tuple(Span(one, CONTEXT - 1, 1, samples=1) for one in requests))
            took = timed(partial(engine.runner.launch, step))
            moved = cost(shape, [(CONTEXT - 1, 1)] * batch, batch).bytes
            how = f"batch {batch}, {'graphs' if graphs else 'eager'}"
            table.row("decode", how, f"{took * 1e3:.2f} ms, {batch / took:,.0f} tokens/s", moved / took / copied)
            for one in requests:
                engine.pool.release(one)
    for prompts in ([PREFILL], [PREFILL // 4] * 4):
        engine = Engine(LLAMA_8B, dtype, rows=4, tokens=PREFILL, longest=max(prompts), graphs=False, weights=weights)
        requests = [request(str(n), length, 1) for n, length in enumerate(prompts)]
        for one in requests:
            engine.pool.grow(one, len(one.tokens))
        step = Step(tuple(Span(one, 0, len(one.tokens), samples=1) for one in requests))
        took = timed(partial(engine.runner.launch, step), max(1, REPEAT // 4))
        done = cost(shape, [(0, length) for length in prompts], len(prompts)).flops
        result = f"{took * 1e3:.1f} ms, {sum(prompts) / took:,.0f} tokens/s"
        table.row("prefill", f"{len(prompts)} of {prompts[0]}", result, done / took / multiplied)


def serve(engine: Engine, requests: Sequence[Request], *, rows: int, tokens: int,
          depth: int) -> tuple[float, list[list[int]]]:  # fmt: skip
    """Seconds until all requests are answered, and the answers. ``depth`` steps are under way at most."""
    scheduler = Scheduler(engine.pool, max_running=rows, step_tokens=tokens)
    for one in requests:
        scheduler.add(one)
    flying: deque[tuple[Step, object]] = deque()
    began = time.perf_counter()
    while scheduler.busy:
        step = scheduler.schedule() if len(flying) < depth else None
        if step is not None:
            flying.append((step, engine.runner.launch(step)))
            if len(flying) < depth:
                continue
        step, sampled = flying.popleft()
        scheduler.settle(step, sampled.host())  # type: ignore[attr-defined]
    wait()
    return time.perf_counter() - began, [one.tokens[one.prompt_len :] for one in requests]


def serving(table: Table) -> None:
    """nano-vllm's workload on the 0.6B shape."""
    dtype = torch.float16 if REHEARSE else torch.bfloat16
    weights = weights_of(QWEN3_06B, dtype)
    draw = random.Random(0)
    sizes = [(draw.randint(SHORTEST, LONGEST), draw.randint(SHORTEST, LONGEST)) for _ in range(REQUESTS)]
    rows, tokens = (4, 16) if REHEARSE else (256, 8192)
    for graphs, depth in ((True, 2), (True, 1), (False, 1)):
        engine = Engine(QWEN3_06B, dtype, rows=rows, tokens=tokens, longest=2 * LONGEST + 16, graphs=graphs,
                        weights=weights)  # fmt: skip
        serve(engine, [request("warm", SHORTEST, 4)], rows=rows, tokens=tokens, depth=depth)
        requests = [request(f"{n}", into, out) for n, (into, out) in enumerate(sizes)]
        took, answers = serve(engine, requests, rows=rows, tokens=tokens, depth=depth)
        how = f"{'graphs' if graphs else 'eager'}, {'one step ahead' if depth > 1 else 'step by step'}"
        count = sum(map(len, answers))
        table.check(
            "serve", how, count == sum(out for _, out in sizes), f"{count} tokens, {count / took:,.0f} tokens/s"
        )


def loading(table: Table) -> None:
    """A folder on disk to the first token."""
    from safetensors.torch import save_file

    from engine.loading import load_model
    from tests.engine import tiny
    from tests.engine.replica import settings

    dtype = torch.float16 if REHEARSE else torch.bfloat16
    shape = {"num_hidden_layers": QWEN3_06B.layers, "hidden_size": QWEN3_06B.hidden, "head_dim": QWEN3_06B.head_dim,
             "intermediate_size": QWEN3_06B.intermediate, "num_attention_heads": QWEN3_06B.heads,
             "num_key_value_heads": QWEN3_06B.kv_heads, "vocab_size": max(QWEN3_06B.vocab, tiny.VOCAB),
             "tie_word_embeddings": True, "max_position_embeddings": 4096}  # fmt: skip
    config = tiny.config("qwen3", **shape)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": tiny.TEMPLATE}))
        tiny.tokenizer().save(str(folder / "tokenizer.json"))
        tensors = {name: torch.randn(size).mul(0.02).to(dtype) for name, size in tiny.shapes(config).items()}
        save_file(tensors, folder / "model.safetensors")
        size = (folder / "model.safetensors").stat().st_size
        began = time.perf_counter()
        load_model(settings(folder, device=DEVICE.type, step_tokens=256, max_running=64))
        wait()
        took = time.perf_counter() - began
    table.row("load", f"{size / 1e9:.2f} GB of safetensors", f"{took:.1f} s, {size / took / 1e9:.2f} GB/s with warm-up")


def main() -> int:
    """Print the table, or why there is none."""
    if not REHEARSE and not torch.cuda.is_available():
        print("not run: this PyTorch sees no CUDA device")
        return 0
    board = "rehearsal: these figures mean nothing" if REHEARSE else torch.cuda.get_device_name(0)
    print(f"{board}, torch {torch.__version__}\n")
    table = Table()
    began = time.monotonic()
    kernels(table)
    sampling(table)
    copied, multiplied = roofs(table)
    steps(table, copied, multiplied)
    serving(table)
    loading(table)
    print(f"\n{time.monotonic() - began:.0f} s")
    return int(table.wrong)


if __name__ == "__main__":
    sys.exit(main())
