"""deploy/install-torch against a pip and a python that only write down what they were asked."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "install-torch"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class Machine:
    """A folder that looks like an environment's ``bin``: its pip knows the indexes that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.driver = folder / "driver-version"
        self.asked = folder / "asked"
        self.has_torch("")
        self.offers()

    def has_torch(self, version: str) -> None:
        # The script hands a probe to python on its standard input; PyTorch's version is a metadata look-up.
        program = "import importlib.metadata, sys\n"
        if version:
            program += f"importlib.metadata.version = lambda name: {version!r}\n"
        else:
            program += "def missing(name): raise importlib.metadata.PackageNotFoundError(name)\n"
            program += "importlib.metadata.version = missing\n"
        (self.folder / "probe.py").write_text(program + "exec(sys.stdin.read())\n")
        self._program("python", f'exec python3 "{self.folder}/probe.py"')

    def offers(self, *requirements: str) -> None:
        """Let pip succeed for these argument lists alone."""
        cases = "".join(f'  "install {requirement}") exit 0 ;;\n' for requirement in requirements)
        self._program(
            "pip",
            f'[ "$1" = --version ] && exit 0\necho "$*" >> "{self.asked}"\ncase "$*" in\n{cases}  *) exit 1 ;;\nesac',
        )

    def _program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(SCRIPT), str(self.folder / "pip")],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "CORRAL_DRIVER_FILE": str(self.driver)},
        )

    @property
    def tried(self) -> list[str]:
        return self.asked.read_text().splitlines() if self.asked.exists() else []


def test_without_a_driver_the_cpu_build_of_the_configured_indexes_is_taken(machine):
    machine.offers("torch==2.13.0+cpu", "torch>=2.11")
    done = machine.run()
    assert done.returncode == 0
    assert machine.tried == ["install torch==2.13.0+cpu"]
    assert "no NVIDIA driver" in done.stderr


def test_without_a_driver_pytorchs_own_cpu_index_is_asked_second(machine):
    machine.offers(f"--index-url {CPU_INDEX} torch==2.13.0+cpu", "torch>=2.11")
    assert machine.run().returncode == 0
    assert machine.tried == ["install torch==2.13.0+cpu", f"install --index-url {CPU_INDEX} torch==2.13.0+cpu"]


def test_without_a_driver_and_without_a_cpu_build_the_default_build_is_taken(machine):
    machine.offers("torch>=2.11")
    assert machine.run().returncode == 0
    assert len(machine.tried) == 3
    assert machine.tried[-1] == "install torch>=2.11"


def test_with_a_driver_only_the_default_build_is_asked_for(machine):
    machine.driver.write_text("NVRM version: ...")
    machine.offers("torch==2.13.0+cpu", "torch>=2.11")
    assert machine.run().returncode == 0
    assert machine.tried == ["install torch>=2.11"]


@pytest.mark.parametrize("version", ["2.11.0", "2.13.0+cpu", "3.0"])
def test_a_torch_that_fits_is_left_alone(machine, version):
    machine.has_torch(version)
    done = machine.run()
    assert done.returncode == 0
    assert machine.tried == []
    assert f"torch {version} is there already" in done.stderr


def test_a_torch_that_is_too_old_is_replaced(machine):
    machine.has_torch("2.9.1")
    machine.offers("torch==2.13.0+cpu")
    assert machine.run().returncode == 0
    assert machine.tried == ["install torch==2.13.0+cpu"]


def test_when_nothing_can_be_had_it_fails_and_says_what_works_without(machine):
    done = machine.run()
    assert done.returncode == 1
    assert "agent, controller and gateway need none" in done.stderr


def test_without_a_pip_it_says_how_to_make_one(tmp_path):
    done = subprocess.run([str(SCRIPT), str(tmp_path / "pip")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "python3 -m venv" in done.stderr
