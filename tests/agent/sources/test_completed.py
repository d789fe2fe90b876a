import asyncio

from agent.sources.completed import Completed
from agent.sources.source import Emit
from tests.agent.sources.collector import running
from vocab.observations import AnyObservation, End, Report


class Reporter:
    name = "reporter"

    async def run(self, emit: Emit) -> None:
        emit(Report(at=1.0, node="n1"))
        await asyncio.Event().wait()


def ended(observation: AnyObservation) -> AnyObservation:
    return End(at=observation.at + 1) if isinstance(observation, Report) else observation


def later(observation: AnyObservation) -> AnyObservation:
    return End(at=observation.at * 10) if isinstance(observation, End) else observation


async def test_every_observation_goes_through_all_steps_in_their_order():
    source = Completed(Reporter(), (ended, later))
    async with running(source) as found:
        assert (await found.find(End)).at == 20.0
    assert source.name == "reporter"
