"""Compiles the fake libnvidia-ml.so.1 with gcc against the nvml.h of PyPI's nvidia-nvml-dev.

``python -m tests.fakes.nvml.build FOLDER`` prints the library's path. Every exported function must have a
prototype in nvml.h: a name that the real library does not have cannot slip in.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
SONAME = "libnvidia-ml.so.1"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes")


def header_folder() -> Path:
    """Where nvml.h lies in this environment."""
    site = Path(sysconfig.get_path("purelib"))
    found = sorted(site.glob("nvidia/cu*/include/nvml.h")) or sorted(site.glob("nvidia/nvml_dev/include/nvml.h"))
    if not found:
        raise FileNotFoundError(f"no nvml.h under {site}/nvidia: pip install nvidia-nvml-dev")
    return found[-1].parent


def build(folder: Path) -> Path:
    """Compile into ``folder`` and return the library's path."""
    target = folder / SONAME
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    warnings = ("-Wno-deprecated-declarations",)
    subprocess.run(
        ["gcc", *FLAGS, *warnings, f"-Wl,-soname,{SONAME}", f"-I{HERE}", "-isystem", str(header_folder()), "-o",
         str(target), *sources],
        check=True,
    )  # fmt: skip
    return target


if __name__ == "__main__":
    print(build(Path(sys.argv[1]).absolute()))
