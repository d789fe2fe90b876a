"""What the controller says as an observer: an agent that shows anything answers."""

import socket
from pathlib import Path

from controller.liveness import _answers
from tests.wire.pki import Authority
from vocab.metrics import AGENT
from wire.exposition import Exposition
from wire.server import listen, make_app
from wire.tls import Contexts, Tls


async def test_an_agent_that_shows_a_certificate_answers(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    cert, key = ours.give("n1")
    app = make_app(ready=lambda: (True, ""), metrics=Exposition(AGENT))
    runner = await listen(app, "127.0.0.1:0", tls=Contexts(Tls(cert=cert, key=key)).server)
    address = f"https://127.0.0.1:{runner.addresses[0][1]}"
    for trusted in (Tls(ca=ours.cert), Tls()):
        assert await _answers(address, Contexts(trusted).client)
    await runner.cleanup()
    assert not await _answers(address, Contexts(Tls(ca=ours.cert)).client)


async def test_nobody_there_is_no_answer() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # taken, and nobody listens
        assert not await _answers(f"http://127.0.0.1:{door.getsockname()[1]}", Contexts(Tls()).client)
