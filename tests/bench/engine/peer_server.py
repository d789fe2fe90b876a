"""A library without a server of its own, behind OpenAI's completions as far as the benchmark asks for them.

    PYTHON peer_server.py transformers|ctranslate2 MODEL TOKENIZER --port N [--threads 2] [--type float32]

Runs in the peer's own environment and imports nothing of Corral. It gives the library its best case: what waits is
computed as one batch by the library's own batched ``generate``, tokens go out as they come, and who comes meanwhile
waits for the next batch (neither library admits requests to a batch that runs).
"""

import argparse
import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

GATHER_S = 0.02  # a burst of requests is taken whole
Emit = Callable[[int, int], None]  # (row, token)


class Transformers:
    """``generate`` of transformers, left-padded."""

    def __init__(self, model: str, _: str, threads: int, kind: str) -> None:
        import torch
        import transformers

        torch.set_num_threads(threads)
        self._torch = torch
        loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, kind))
        self._model = loaded.eval()
        self._model.generation_config.eos_token_id = None  # lengths are asked for, not left to the model

    def generate(self, prompts: list[list[int]], tokens: int, emit: Emit) -> None:
        """All prompts as one batch."""
        width = max(map(len, prompts))
        ids = self._torch.tensor([[2] * (width - len(one)) + one for one in prompts])
        mask = self._torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts])

        class Streamer:
            begun = False

            def put(self, value: Any) -> None:
                if self.begun:  # the first call carries the prompt
                    for row, token in enumerate(value.tolist()):
                        emit(row, token)
                self.begun = True

            def end(self) -> None:
                pass

        with self._torch.inference_mode():
            self._model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False,
                                 pad_token_id=2, streamer=Streamer())  # fmt: skip


class CTranslate2:
    """``generate_batch`` of CTranslate2, greedy."""

    def __init__(self, model: str, tokenizer: str, threads: int, kind: str) -> None:
        import ctranslate2

        self._tokenizer = load_tokenizer(tokenizer)
        self._generator = ctranslate2.Generator(model, compute_type=kind, intra_threads=threads, inter_threads=1)

    def generate(self, prompts: list[list[int]], tokens: int, emit: Emit) -> None:
        """All prompts as one batch."""
        texts = [[self._tokenizer.id_to_token(token) for token in one] for one in prompts]

        def told(result: Any) -> bool:
            emit(result.batch_id, result.token_id)
            return False

        self._generator.generate_batch(texts, max_length=tokens, min_length=tokens, beam_size=1, sampling_topk=1,
                                       end_token=[], include_prompt_in_result=False, callback=told)  # fmt: skip


def load_tokenizer(folder: str) -> Any:
    """The tokenizer of a model folder."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(f"{folder}/tokenizer.json")


class Server:
    """Requests wait in a queue; one thread computes batch after batch."""

    def __init__(self, library: Any, tokenizer: Any) -> None:
        self._library = library
        self._tokenizer = tokenizer
        self._waiting: asyncio.Queue[tuple[list[int], int, asyncio.Queue[int]]] = asyncio.Queue()

    async def batches(self) -> None:
        """Compute what waits, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            await asyncio.sleep(GATHER_S)
            while not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            answers = [answer for _, _, answer in batch]

            def emit(row: int, token: int, answers: list[asyncio.Queue[int]] = answers) -> None:
                loop.call_soon_threadsafe(answers[row].put_nowait, token)

            prompts = [prompt for prompt, _, _ in batch]
            await asyncio.to_thread(self._library.generate, prompts, max(count for _, count, _ in batch), emit)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions, always as a stream."""
        wish = await request.json()
        prompt = self._tokenizer.encode(wish["prompt"], add_special_tokens=False).ids
        answer: asyncio.Queue[int] = asyncio.Queue()
        await self._waiting.put((prompt, wish["max_tokens"], answer))
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for _ in range(wish["max_tokens"]):
            token = await answer.get()
            chunk = {"choices": [{"index": 0, "text": self._tokenizer.decode([token]), "token_ids": [token]}]}
            await stream.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await stream.write(b"data: [DONE]\n\n")
        return stream


async def healthy(_: web.Request) -> web.Response:
    """GET /health: it answers only once the model is loaded."""
    return web.Response()


async def application(options: argparse.Namespace) -> web.Application:
    """The server, loaded."""
    kinds = {"transformers": Transformers, "ctranslate2": CTranslate2}
    library = kinds[options.library](options.model, options.tokenizer, options.threads, options.type)
    server = Server(library, load_tokenizer(options.tokenizer))
    app = web.Application()
    app["batches"] = asyncio.create_task(server.batches())
    app.add_routes([web.post("/v1/completions", server.complete), web.get("/health", healthy)])
    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=("transformers", "ctranslate2"))
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--type", default="float32")
    options = parser.parse_args()
    web.run_app(application(options), host="127.0.0.1", port=options.port, print=None)


if __name__ == "__main__":
    main()
