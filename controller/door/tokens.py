"""The tokens of this fleet: made, traded, revoked and recognised. Of a secret only its digest is kept.

A secret holds 256 random bits, so a plain SHA-256 of it cannot be turned back; it begins with ``corral_`` and its id,
so that it is found in a leak and told apart in an audit without being shown. All are held in memory: a database that
is down locks nobody out.
"""

import asyncio
import hmac
import logging
import secrets
from hashlib import sha256

import msgspec

from controller.store import tokens as table
from controller.store.records import Audit
from controller.store.store import Store
from controller.store.tokens import Token
from vocab.clock import Clock
from vocab.errors import InputError, Refused, Unreachable
from vocab.roles import Role

log = logging.getLogger(__name__)

LOOK_S = 5.0  # after so long a token that another controller has revoked counts no more here
PREFIX = "corral"
NONE = sha256(b"").hexdigest()  # compared with where there is no token, so that both take as long


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was just made. ``secret`` is shown this once and stored nowhere."""

    token: Token
    secret: str


class Tokens:
    """All tokens. Changes are on disk, with their audit, when the call returns."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, Token] = {}
        self._mark: object = None
        self._turn = asyncio.Lock()  # what was read before a change must not be taken for what is after it

    async def load(self) -> None:
        """Take what the database has, if that has changed. Raises Unreachable."""
        async with self._turn, self._store.reading() as connection:
            mark = await table.mark(connection)
            if mark != self._mark:
                self._known = {token.id: token for token in await table.all_tokens(connection)}
                self._mark = mark

    async def run(self) -> None:
        """Look for what other controllers did, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.load()
            except Unreachable as error:
                log.warning("tokens were not read again, those known go on: %s", error)

    def find(self, secret: str) -> Token | None:
        """The token of which this is the secret, if it counts now."""
        parts = secret.split("_", 2)
        token = self._known.get(parts[1]) if len(parts) == 3 and parts[0] == PREFIX else None
        digest = _digest(secret)
        same = hmac.compare_digest(digest, token.digest if token else NONE)
        return token if same and token is not None and token.counts(self._clock.now()) else None

    def counts(self, token: Token) -> bool:
        """Whether its bearer is let in now."""
        return token.counts(self._clock.now())

    def all(self) -> list[Token]:
        """Every token, also those that count no more, the oldest first."""
        return sorted(self._known.values(), key=lambda token: (token.made_at, token.id))

    def named(self, id: str) -> Token | None:  # noqa: A002 - its own word
        """The token with this id."""
        return self._known.get(id)

    async def make(
        self, *, name: str, role: Role, node: str | None, ttl_s: float | None, by: str, reason: str
    ) -> Issued:
        """A new token. Raises InputError, Refused or Unreachable."""
        if role is Role.NODE and node is None:
            raise InputError("`node` is missing: a token of role node is bound to one")
        if node is not None and role not in {Role.NODE, Role.ENROLL, Role.GATEWAY}:
            raise InputError(f"`node` is given: a token of role {role.value} is not bound to a node")
        now = self._clock.now()
        if any(token.name == name and token.counts(now) for token in self._known.values()):
            raise Refused(f"a token named {name!r} counts already; revoke it or choose another name")
        issued = self._issue(name=name, role=role, node=node, ttl_s=ttl_s, by=by, now=now)
        audit = Audit(now, by, "token_create", f"token:{name}", reason, f"{role.value} token {issued.token.id}")
        await self._write([issued.token], audit)
        return issued

    async def revoke(self, token: Token, *, by: str, reason: str) -> Token:
        """End a token; one that was revoked already is answered as it is. Raises Unreachable."""
        if token.revoked_at is not None:
            return token
        now = self._clock.now()
        ended = msgspec.structs.replace(token, revoked_at=now, changed=now)
        await self._write([ended], Audit(now, by, "token_revoke", f"token:{token.name}", reason, f"revoked {token.id}"))
        return ended

    async def enroll(self, once: str, node: str, *, by: str) -> Issued:
        """Trade the one-time token with the id ``once`` for the own token of ``node``. Raises Refused, Unreachable."""
        now = self._clock.now()
        spent = self._known.get(once)
        if spent is None or spent.role is not Role.ENROLL:
            raise Refused("only a one-time token can be traded; make one: corral token create --role enroll")
        if spent.node is not None and spent.node != node:
            raise Refused(f"this one-time token is for node {spent.node!r} and not for {node!r}")
        before = [each for each in self._known.values() if each.role is Role.NODE and each.node == node]
        standing = [each for each in before if each.counts(now)]
        if standing and spent.node is None:
            raise Refused(
                f"node {node!r} has a token already ({standing[0].id}); revoke it, or make a one-time token for"
                f" this node: corral token create --role enroll --node {node}"
            )
        issued = self._issue(name=f"node-{node}", role=Role.NODE, node=node, ttl_s=None, by=by, now=now)
        if not await self._spend(spent, [issued.token], standing, now):
            raise Refused("this one-time token was traded already; make another: corral token create --role enroll")
        return issued

    def _issue(self, *, name: str, role: Role, node: str | None, ttl_s: float | None, by: str, now: float) -> Issued:
        ident = secrets.token_hex(6)
        secret = f"{PREFIX}_{ident}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=ident,
            name=name,
            role=role,
            node=node,
            digest=_digest(secret),
            made_at=now,
            made_by=by,
            expires_at=None if ttl_s is None else now + ttl_s,
            changed=now,
        )
        return Issued(token=token, secret=secret)

    async def _write(self, tokens: list[Token], audit: Audit) -> None:
        async with self._turn:
            async with self._store.writing() as connection:
                await table.put(connection, tokens)
                await table.note(connection, audit)
            self._known.update({token.id: token for token in tokens})

    async def _spend(self, spent: Token, fresh: list[Token], ended: list[Token], now: float) -> bool:
        """Use a one-time token up, give ``fresh`` and end ``ended``, all or nothing; False if it was used before."""
        used = msgspec.structs.replace(spent, used_at=now, changed=now)
        gone = [msgspec.structs.replace(token, revoked_at=now, changed=now) for token in ended]
        given = ", ".join(token.id for token in fresh)
        audit = Audit(now, spent.name, "enroll", f"node:{fresh[0].node}", "one-time token", f"node token {given}")
        async with self._turn:
            async with self._store.writing() as connection:
                if not await table.spend(connection, used):
                    return False
                await table.put(connection, [*fresh, *gone])
                await table.note(connection, audit)
            self._known.update({token.id: token for token in (used, *fresh, *gone)})
            return True


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
