"""The evidence in one tar: what is there can be proven, what is missing is named."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from controller.deciding.mind import real_core
from tests.controller.house import RAW, House, event, house, uuid
from tests.controller.node import Node


async def fault(home: House) -> str:
    node = Node(home)
    await node.send()
    await node.settle()
    await node.send(event(1, gpu=0))
    return str((await home.get("incidents"))[0]["id"])


def unpacked(raw: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar.getmembers()}  # type: ignore[union-attr]


async def test_a_bundle_of_an_incident_has_its_story_its_proof_and_its_sums(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        name = await fault(home)
        parts = unpacked(await home.fetch("GET", f"/api/v1/incidents/{name}/bundle"))
    assert {each.partition("/")[0] for each in parts} == {name}
    parts = {each.partition("/")[2]: body for each, body in parts.items()}
    assert parts["kernel.log"].decode().strip() == RAW
    assert '"kind":"incident"' in parts["timeline.jsonl"].decode()
    assert "hold placed by policy" in parts["timeline.txt"].decode()
    assert json.loads(parts["n1/node.json"])["driver"] == "570.1"
    manifest = json.loads(parts.pop("manifest.json"))["sha256"]
    assert manifest == {each: hashlib.sha256(body).hexdigest() for each, body in parts.items()}


async def test_what_an_agent_cannot_give_is_named_and_fails_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await fault(home)
        parts = unpacked(await home.fetch("GET", f"/api/v1/gpus/{uuid(0)}/bundle"))
    readme = parts[f"{uuid(0)}/README.txt"].decode()
    assert "n1/recording.jsonl: its agent did not give it" in readme
    assert "its agent did not give what it took for a-" in readme
    assert "readings.json: no event of it was told by readings" in readme
    assert f"{uuid(0)}/readings.json" not in parts
    assert f"{uuid(0)}/timeline.jsonl" in parts


async def test_of_what_does_not_exist_there_is_none(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        for path in ("incidents/i-none/bundle", "gpus/GPU-none/bundle"):
            status, _, _ = await home.raw("GET", f"/api/v1/{path}")
            assert status == 404
