"""On what a GPU's tests run: the GPU itself, or the CPU in place of a virtual one."""

from typing import Literal

import msgspec

from agent.config import AgentConfig
from agent.sources.dcgm.engine import EMBEDDED
from agent.sources.dcgm.sight import OFF, DcgmSettings


class Bench(msgspec.Struct, frozen=True):
    """``faults`` are those of a virtual GPU, in the words of the measuring program; ``dcgm`` None: it is not asked."""

    device: Literal["cuda", "cpu"] = "cuda"
    faults: tuple[str, ...] = ()
    dcgm: DcgmSettings | None = None


def of_gpu(config: AgentConfig) -> Bench:
    """A real GPU; a host engine within the agent's own child makes no diagnostics."""
    if config.dcgm in {OFF, EMBEDDED}:
        return Bench()
    settings = DcgmSettings(engine=config.dcgm, bindings=config.dcgm_bindings, profiling=config.dcgm_profiling)
    return Bench(dcgm=settings)
