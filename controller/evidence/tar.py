"""Parts as one tar, chunk by chunk as they come, with a README and the SHA-256 of each."""

import hashlib
import tarfile
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

Part = tuple[str, bytes]


async def packed(name: str, at: int, parts: AsyncIterator[Part], missing: Sequence[str]) -> AsyncIterator[bytes]:
    """The tar. ``missing`` is read once the parts are over: it names what could not be had."""
    sums: dict[str, str] = {}
    async for part, body in parts:
        sums[part] = hashlib.sha256(body).hexdigest()
        for chunk in _entry(f"{name}/{part}", body, at):
            yield chunk
    readme = _readme(name, sums, missing).encode()
    sums["README.txt"] = hashlib.sha256(readme).hexdigest()
    manifest = msgspec.json.format(msgspec.json.encode({"of": name, "sha256": sums}))
    for part, body in (("README.txt", readme), ("manifest.json", manifest)):
        for chunk in _entry(f"{name}/{part}", body, at):
            yield chunk
    yield bytes(2 * tarfile.BLOCKSIZE)


def _entry(name: str, body: bytes, at: int) -> Iterable[bytes]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(body), 0o644, at
    return entry.tobuf(tarfile.PAX_FORMAT), body, bytes(-len(body) % tarfile.BLOCKSIZE)


def _readme(name: str, parts: Iterable[str], missing: Sequence[str]) -> str:
    held = "\n".join(f"  {part}" for part in parts)
    lacks = "\n".join(f"  {each}" for each in missing) or "  nothing"
    return (
        f"Evidence of {name}, packed by Corral.\n\nWhat is here (SHA-256 of each in manifest.json):\n{held}\n\n"
        f"What is missing, and why:\n{lacks}\n\n`corral replay NODE/recording.jsonl` plays what a node saw of late.\n"
    )
