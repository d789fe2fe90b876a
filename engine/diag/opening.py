"""Does the device open: a context is made and a first piece of work comes back."""

import torch

from engine.diag.bench import Bench
from vocab.diag import AnyFigures, Opened, Unmeasured

TEST = "open"


def measure(bench: Bench) -> AnyFigures:
    """Open it. CUDA's own error is passed on as it is."""
    if not bench.is_cuda:
        return Opened(device="cpu", board="this machine's CPU")
    if torch.version.cuda is None:
        return Unmeasured(test=TEST, why="this PyTorch is built without CUDA: install a CUDA build of torch")
    try:
        properties = torch.cuda.get_device_properties(0)
        torch.ones(1, device="cuda").add_(1).cpu()
    except (RuntimeError, AssertionError) as error:
        words = str(error).splitlines()[0]
        return Unmeasured(test=TEST, why=f"CUDA did not open it: {words}", error=words)
    return Opened(device="cuda", board=properties.name, memory_bytes=properties.total_memory)
