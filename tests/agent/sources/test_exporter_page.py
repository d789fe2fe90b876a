"""Pages of dcgm-exporter in the forms that its releases print; typed anew, with figures of our own."""

import pytest

from agent.sources.exporter_names import NUMBERS
from agent.sources.exporter_page import read_page

A, B = "GPU-aaaaaaaa-0000-4000-8000-000000000001", "GPU-bbbbbbbb-0000-4000-8000-000000000002"


def line(name: str, value: object, uuid: str = A, more: str = "") -> str:
    return f'{name}{{gpu="3",UUID="{uuid}",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"{more}}} {value}'


def test_a_page_is_read_by_gpu_and_field():
    page = read_page(
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
        + line("DCGM_FI_DEV_GPU_TEMP", 41, more=',pci_bus_id="00000000:5D:00.0",DCGM_FI_DRIVER_VERSION="580.95.05"')
        + "\n" + line("DCGM_FI_DEV_GPU_TEMP", 43, B) + "\n"
        + "process_cpu_seconds_total 12.5\n"
    )  # fmt: skip
    assert page.driver == "580.95.05"
    assert {uuid: gpu.values for uuid, gpu in page.gpus.items()} == {A: {150: 41.0}, B: {150: 43.0}}
    assert (page.gpus[A].index, page.gpus[A].pci, page.gpus[A].name) == (3, "0000:5d:00", "NVIDIA H100 80GB HBM3")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (f'DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="{A}",device="nvidia0",hostname="n1"}} 1980', 100),  # since 4.8.3
        (f'DCGM_FI_PROF_TENSOR_UTIL_RATIO{{gpu="0",UUID="{A}",modelName="x",Hostname="n1"}} 0.5', 1004),  # DCGM 4.6
        (f'dcgm_gpu_temp{{gpu="0",uuid="{A}"}} 41', 150),  # gpu-monitoring-tools 1.x
    ],
)
def test_every_spelling_of_its_history_is_known(text, field):
    assert list(read_page(text + "\n").gpus[A].values) == [field]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("140737488355328", "BLANK"),
        ("140737488355330", "NOT_SUPPORTED"),
        ("2147483632", "BLANK"),
        ("2147483635", "NOT_PERMISSIONED"),
        ("9223372036854775792", "BLANK"),
        ("9.223372036854775794e+18", "BLANK"),
        ("NaN", "BLANK"),
        ("+Inf", "BLANK"),
    ],
)
def test_a_blank_is_no_number(value, kind):
    gpu = read_page(line("DCGM_FI_PROF_SM_ACTIVE", value) + "\n").gpus[A]
    assert (gpu.values, gpu.errors) == ({}, {1002: kind})


def test_a_line_that_is_no_sample_costs_only_itself():
    page = read_page(line("DCGM_FI_DEV_POWER_USAGE", "N/A") + "\n" + line("DCGM_FI_DEV_GPU_TEMP", 43, B) + "\n")
    assert page.unread == 1
    assert page.gpus[B].values == {150: 43.0}


def test_figures_of_an_instance_are_its_own_and_those_of_the_gpu_are_told_once():
    more = ',GPU_I_PROFILE="1g.10gb",GPU_I_ID="{}"'
    rows = [line(name, value, more=more.format(gi)) for gi in (7, 9)
            for name, value in (("DCGM_FI_DEV_FB_USED", 100 + gi), ("DCGM_FI_DEV_GPU_TEMP", 41))]  # fmt: skip
    gpu = read_page("\n".join(rows) + "\n").gpus[A]
    assert gpu.values == {150: 41.0}
    assert gpu.instances == {7: {252: 107.0}, 9: {252: 109.0}}


@pytest.mark.parametrize("text", ["", "<html>404</html>", "\n\n", "DCGM_FI_DEV_GPU_TEMP 41\n", "{} 1\n"])
def test_what_is_no_page_of_gpus_has_none(text):
    assert read_page(text).gpus == {}


def test_no_two_fields_share_a_name():
    assert len(NUMBERS) == len(set(NUMBERS))
