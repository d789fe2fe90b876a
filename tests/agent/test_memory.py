"""What an agent remembers over its own death, and since when."""

from agent.fence import Fences
from agent.judge import Judge
from agent.latest import Latest
from agent.memory import pack, unpack
from tests.agent.made import inventory, scene
from vocab.states import Level


def test_an_agent_without_a_disk_remembers_since_now_and_one_with_it_since_it_began():
    judge, fences, answered, since = unpack(None, "n1", "b1", 100.0)
    assert (answered, since) == ((), 100.0)
    kept = pack(judge, fences, ("a1",), since)
    assert unpack(kept, "n1", "b1", 900.0)[2:] == (("a1",), 100.0)


def test_a_state_that_cannot_be_read_is_a_memory_that_begins_now():
    assert unpack(b"torn", "n1", "b1", 900.0)[3] == 900.0


def test_a_state_of_an_agent_that_did_not_say_claims_no_age():
    assert unpack(pack(Judge("n1", "b1"), Fences(), ()), "n1", "b1", 900.0)[3] is None


def test_the_controller_is_told_since_when_it_remembers():
    latest = Latest(Level.REPAIR, "1", "")
    latest.remembers_since = 100.0
    latest.take(inventory(1.0), scene(), 1.0)
    assert latest.facts("n1", "b1").remembers_since == 100.0
