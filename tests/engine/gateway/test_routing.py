from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.gateway.ask import understand
from engine.gateway.routing import NEAR, PANIC_COST, PREFIX_BYTES, Pick, pick
from engine.gateway.table import DOUBT_S, Entry, Listed, Routable

NOW = 50.0


def entry(name: str, doubted_until: float = 0.0) -> Entry:
    listed = Listed(replica=name, deployment="chat", url=f"http://{name}")
    return Entry(listed=listed, judged_at=NOW, answered_at=NOW, doubted_until=doubted_until)


def ready(*names: str) -> Routable:
    return Routable(tuple(entry(name) for name in names))


def chosen(among: Routable, outstanding: dict[str, int] | None = None, prefix: bytes = b"a", tried: str = "") -> str:
    found = pick(among, outstanding or {}, prefix, tried.split(), NOW)
    return found.entry.replica if found else ""


def test_the_one_with_the_least_to_do_takes_it() -> None:
    assert {chosen(ready("r1", "r2"), {"r1": 3}, bytes([n])) for n in range(30)} == {"r2"}


def test_one_prefix_stays_with_one_replica_while_loads_are_near_equal() -> None:
    among = ready("r1", "r2", "r3")
    home = chosen(among)
    assert chosen(among, {home: NEAR}) == home
    assert chosen(among, {home: NEAR + 1}) != home


def test_prefixes_spread_over_replicas() -> None:
    spread = Counter(chosen(ready("r1", "r2", "r3", "r4"), prefix=str(n).encode()) for n in range(400))
    assert min(spread.values()) > 60


def test_a_replica_that_goes_moves_only_its_own_prefixes() -> None:
    prefixes = [str(n).encode() for n in range(100)]
    before = {prefix: chosen(ready("r1", "r2", "r3"), prefix=prefix) for prefix in prefixes}
    after = {prefix: chosen(ready("r1", "r2"), prefix=prefix) for prefix in prefixes}
    assert all(after[prefix] == home for prefix, home in before.items() if home != "r3")


def test_what_was_tried_is_left_out() -> None:
    assert chosen(ready("r1", "r2"), tried="r1") == "r2"
    assert chosen(ready("r1"), tried="r1") == ""


def test_a_doubted_replica_is_used_when_there_is_no_other() -> None:
    doubted = entry("r1", NOW + DOUBT_S)
    assert chosen(Routable((doubted, entry("r2"))), {"r2": 50}) == "r2"
    assert chosen(Routable((doubted,))) == "r1"


def test_fenced_replicas_take_what_the_others_cannot() -> None:
    among = Routable((entry("r1"),), (entry("r2"),), panic=True)
    assert pick(among, {"r1": PANIC_COST - NEAR - 1}, b"", (), NOW) == Pick(entry("r1"))
    assert pick(among, {"r1": PANIC_COST + NEAR + 1}, b"", (), NOW) == Pick(entry("r2"), panic=True)


@given(st.dictionaries(st.sampled_from(["r1", "r2", "r3"]), st.integers(0, 20)), st.binary(max_size=8))
def test_a_pick_is_never_more_than_near_above_the_least(outstanding: dict[str, int], prefix: bytes) -> None:
    found = chosen(ready("r1", "r2", "r3"), outstanding, prefix)
    least = min(outstanding.get(name, 0) for name in ("r1", "r2", "r3"))
    assert outstanding.get(found, 0) <= least + NEAR


def test_the_prefix_is_the_first_part_of_the_prompt_however_it_is_given() -> None:
    chat = understand(
        "/v1/chat/completions", b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
    )
    assert (chat.model, chat.streams, chat.prefix) == ("m", True, b'[{"role":"user","content":"hi"}]')
    assert understand("/v1/completions", b'{"prompt":"' + b"x" * 9000 + b'","model":"m"}').prefix[:3] == b'"xx'
    assert len(understand("/v1/completions", b'{"prompt":"' + b"x" * 9000 + b'","model":"m"}').prefix) == PREFIX_BYTES
    assert understand("/v1/completions", b'{"prompt":[1,2],"model":"m","stream":null}').prefix == b"[1,2]"
