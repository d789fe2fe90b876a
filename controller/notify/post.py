"""One notice on its way: signed, with a key by which a receiver knows a repeat, sent once."""

import hashlib
import hmac
import ssl
from pathlib import Path

import aiohttp

from controller.notify.config import WebhookConfig
from controller.notify.notice import Notice
from vocab.errors import ConfigError, Refused, Unreachable
from wire.server import read_token

ANSWER_S = 10.0
AGAIN = frozenset({408, 425, 429})  # as 5xx: not now


def signature(secret: str, at: int, body: bytes) -> str:
    """``t=SECONDS,v1=HEX``: HMAC-SHA256 over the time, a dot and the body."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


async def post(session: aiohttp.ClientSession, config: WebhookConfig, notice: Notice, body: bytes, at: int) -> None:
    """Send it. Raises Unreachable (send it again) or Refused (it will not be taken)."""
    headers = {
        "Content-Type": config.content_type,
        "User-Agent": "corral",
        "Idempotency-Key": notice.key,
        "Corral-Event": notice.what.value,
    }
    secret, token = (read_token(Path(file) if file else None) for file in (config.secret_file, config.token_file))
    if secret:
        headers["Corral-Signature"] = signature(secret, at, body)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    try:
        async with session.post(
            config.url, data=body, headers=headers, timeout=timeout, allow_redirects=False
        ) as answer:
            status, asked = answer.status, answer.headers.get("Retry-After", "")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(f"webhook {config.name} does not answer: {error or type(error).__name__}") from error
    if status >= 500 or status in AGAIN:
        wait_s = float(asked) if asked.isdecimal() else 0.0
        raise Unreachable(f"webhook {config.name} answered {status}", retry_after_s=min(wait_s, 300.0))
    if status >= 300:
        raise Refused(f"webhook {config.name} answered {status}: it does not take notice {notice.key}")


def connector(config: WebhookConfig) -> aiohttp.TCPConnector:
    """The way there. Raises ConfigError."""
    if config.ca_file is None:
        return aiohttp.TCPConnector()
    try:
        return aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=config.ca_file))
    except OSError as error:
        raise ConfigError(f"webhooks: ca_file {config.ca_file} cannot be used: {error}") from error
