"""The fake libnvidia-ml.so.1 as the real nvidia-ml-py sees it."""

from pathlib import Path

import pytest

from agent.virtual.faults import Fault, apply
from agent.virtual.state import VirtualState, uuid_of
from tests.fakes.nvml.scenario import LIMIT_S, ask, start

NOT_SUPPORTED, DRIVER_NOT_LOADED, TIMEOUT, LOST, VERSION_MISMATCH = 3, 9, 10, 15, 25


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a")


def test_the_inventory_is_that_of_the_node(nvml_library: Path, state: VirtualState) -> None:
    found = ask(
        nvml_library,
        state.path,
        """{
            "count": nvml.nvmlDeviceGetCount(),
            "uuids": [nvml.nvmlDeviceGetUUID(gpu(i)) for i in range(8)],
            "bus": nvml.nvmlDeviceGetPciInfo(gpu(0)).busId,
            "by_bus": nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByPciBusId("0000:3b:00.0")),
            "name": nvml.nvmlDeviceGetName(gpu(0)),
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "mig": nvml.nvmlDeviceGetMigMode(gpu(0)),
        }""",
    )
    assert found == {
        "count": 8,
        "uuids": [uuid_of("node-a", index) for index in range(8)],
        "bus": "00000000:19:00.0",
        "by_bus": 1,
        "name": "NVIDIA H100 80GB HBM3",
        "driver": "565.57.01",
        "mig": [0, 0],
    }


def test_a_struct_of_another_version_is_refused(nvml_library: Path, state: VirtualState) -> None:
    assert ask(
        nvml_library,
        state.path,
        "[error(nvml.nvmlDeviceGetMemoryInfo, gpu(0), v) for v in (nvml.nvmlMemory_v2, nvml.nvmlMemory_v2 + 1)]",
    ) == [0, VERSION_MISMATCH]
    fabric = "error(nvml.nvmlDeviceGetGpuFabricInfoV, gpu(0), byref(nvml.c_nvmlGpuFabricInfo_v3_t()))"
    assert ask(nvml_library, state.path, fabric) == VERSION_MISMATCH


def test_the_first_memory_call_counts_reserved_memory_as_used(nvml_library: Path, state: VirtualState) -> None:
    state.gpus[0].memory_used_bytes = 1000
    used = "[nvml.nvmlDeviceGetMemoryInfo(gpu(0)).used, nvml.nvmlDeviceGetMemoryInfo(gpu(0), nvml.nvmlMemory_v2).used]"
    assert ask(nvml_library, state.path, used) == [1000 + state.board.memory_reserved_bytes, 1000]


def test_single_fields_fail_inside_a_call_that_succeeds(nvml_library: Path, state: VirtualState) -> None:
    found = ask(
        nvml_library,
        state.path,
        "[[f.nvmlReturn, f.value.uiVal] for f in nvml.nvmlDeviceGetFieldValues(gpu(0), [82, 60000, (164, 17)])]",
    )
    assert found[0] == [0, state.gpus[0].memory_temperature_c]
    assert [row[0] for row in found] == [0, NOT_SUPPORTED, 0]
    assert found[2][1] == state.board.link_speed_mb_per_s


def test_a_lost_gpu_fails_every_call_and_the_others_answer(nvml_library: Path, state: VirtualState) -> None:
    program = """
        handles = [gpu(i) for i in range(8)]
        print("ready", flush=True)
        sys.stdin.readline()
        calls = [nvml.nvmlDeviceGetUUID, nvml.nvmlDeviceGetPowerUsage, nvml.nvmlDeviceGetUtilizationRates]
        print(json.dumps([[error(call, handle) for call in calls] for handle in handles]), flush=True)
        print(json.dumps([nvml.nvmlDeviceGetCount(), error(nvml.nvmlDeviceGetHandleByIndex, 2)]), flush=True)
    """
    with start(nvml_library, state.path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        apply(state, Fault(kind="xid", code=79, gpu=2))
        answers, _ = process.communicate("\n", timeout=LIMIT_S)
    assert answers.splitlines() == [
        str([[0, 0, 0] if index != 2 else [LOST] * 3 for index in range(8)]),
        str([8, LOST]),
    ]


def test_a_removed_gpu_shrinks_the_count(nvml_library: Path, state: VirtualState) -> None:
    state.gpus[3].removed = 1
    found = ask(nvml_library, state.path, "[nvml.nvmlDeviceGetUUID(gpu(i)) for i in range(nvml.nvmlDeviceGetCount())]")
    assert found == [uuid_of("node-a", index) for index in range(8) if index != 3]


def test_an_xid_wakes_a_waiting_event_set(nvml_library: Path, state: VirtualState) -> None:
    program = """
        events = nvml.nvmlEventSetCreate()
        for i in range(8):
            nvml.nvmlDeviceRegisterEvents(gpu(i), nvml.nvmlEventTypeXidCriticalError, events)
        print(error(nvml.nvmlEventSetWait, events, 20), flush=True)
        print("waiting", flush=True)
        pushed = nvml.nvmlEventSetWait(events, 10000)
        same = ctypes.cast(pushed.device, ctypes.c_void_p).value == ctypes.cast(gpu(5), ctypes.c_void_p).value
        print(json.dumps([pushed.eventType, pushed.eventData, same, pushed.gpuInstanceId]), flush=True)
    """
    apply(state, Fault(kind="xid", code=31, gpu=5))  # before the registration: not told
    with start(nvml_library, state.path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{TIMEOUT}\n"
        assert process.stdout.readline() == "waiting\n"
        apply(state, Fault(kind="xid", code=13, gpu=5, pid=4242, process="python3"))
        answer, _ = process.communicate(timeout=LIMIT_S)
    assert answer == "[8, 13, true, 4294967295]\n"


def test_the_set_reports_a_lost_gpu_after_its_xid(nvml_library: Path, state: VirtualState) -> None:
    program = """
        events = nvml.nvmlEventSetCreate()
        nvml.nvmlDeviceRegisterEvents(gpu(0), nvml.nvmlEventTypeXidCriticalError, events)
        print("waiting", flush=True)
        print(nvml.nvmlEventSetWait(events, 10000).eventData, error(nvml.nvmlEventSetWait, events, 10000), flush=True)
    """
    with start(nvml_library, state.path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        apply(state, Fault(kind="xid", code=79, gpu=0))
        answer, _ = process.communicate(timeout=LIMIT_S)
    assert answer == f"79 {LOST}\n"


def test_a_hang_switch_blocks_its_gpu_alone(nvml_library: Path, state: VirtualState) -> None:
    program = """
        import threading
        sick, well = gpu(1), gpu(2)
        print("ready", flush=True)
        sys.stdin.readline()
        blocked = threading.Thread(target=nvml.nvmlDeviceGetPowerUsage, args=(sick,))
        blocked.start()
        nvml.nvmlDeviceGetPowerUsage(well)
        blocked.join(0.05)
        print(blocked.is_alive(), flush=True)
        blocked.join(10)
        print(blocked.is_alive(), flush=True)
    """
    with start(nvml_library, state.path, program) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        state.gpus[1].hang = 1
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "True\n"
        state.gpus[1].hang = 0
        assert process.stdout.readline() == "False\n"


def test_gpm_gives_means_between_two_samples_and_touches_no_more_than_asked(
    nvml_library: Path, state: VirtualState
) -> None:
    state.gpus[0].sm_active_percent = 25.0
    program = """
        first, second = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        nvml.nvmlGpmSampleGet(gpu(0), first)
        nvml.nvmlGpmSampleGet(gpu(0), second)
        get = nvml.c_nvmlGpmMetricsGet_t()
        get.version, get.numMetrics, get.sample1, get.sample2 = nvml.NVML_GPM_METRICS_GET_VERSION, 2, first, second
        get.metrics[0].metricId, get.metrics[1].metricId, get.metrics[2].metricId = 2, 30, 2
        get.metrics[2].value = -1.0
        nvml.nvmlGpmMetricsGet(get)
        print([get.metrics[0].value, get.metrics[1].nvmlReturn, get.metrics[2].value])
    """
    with start(nvml_library, state.path, program) as process:
        answer, _ = process.communicate(timeout=LIMIT_S)
    assert answer == f"[25.0, {NOT_SUPPORTED}, -1.0]\n"


def test_a_driver_that_is_not_loaded_fails_the_initialisation(nvml_library: Path, state: VirtualState) -> None:
    state.block.init_error = DRIVER_NOT_LOADED
    assert ask(nvml_library, state.path, "error(nvml.nvmlInit)", init=False) == DRIVER_NOT_LOADED
    assert ask(nvml_library, state.path.with_name("absent"), "error(nvml.nvmlInit)", init=False) == DRIVER_NOT_LOADED


def test_processes_are_listed_with_their_memory(nvml_library: Path, state: VirtualState) -> None:
    gpu = state.gpus[0]
    gpu.processes[0].pid, gpu.processes[0].used_bytes, gpu.process_count = 4242, 1 << 30, 1
    expression = "[[p.pid, p.usedGpuMemory] for p in nvml.nvmlDeviceGetComputeRunningProcesses(gpu({}))]"
    assert ask(nvml_library, state.path, expression.format(0)) == [[4242, 1 << 30]]
    assert ask(nvml_library, state.path, expression.format(1)) == []


def test_calls_are_counted_by_gpu(nvml_library: Path, state: VirtualState) -> None:
    ask(nvml_library, state.path, "[nvml.nvmlDeviceGetPowerUsage(gpu(4)) for _ in range(3)]")
    assert state.gpus[4].calls == 6  # three look-ups, three reads
    assert state.gpus[0].calls == 0


def test_mig_instances_have_devices_of_their_own_and_the_gpu_lacks_what_they_divide(
    nvml_library: Path, state: VirtualState
) -> None:
    gpu = state.gpus[2]
    gpu.mig_mode, gpu.instance_count = 1, 1
    row = gpu.instances[0]
    row.uuid, row.gi, row.ci, row.memory_used_bytes, row.sram_uncorrected = b"MIG-a", 7, 0, 5, 4
    found = ask(
        nvml_library,
        state.path,
        """(lambda mig: [
            nvml.nvmlDeviceGetUUID(mig), nvml.nvmlDeviceGetGpuInstanceId(mig),
            nvml.nvmlDeviceGetMemoryInfo(mig, nvml.nvmlMemory_v2).used,
            nvml.nvmlDeviceGetMemoryErrorCounter(mig, 1, 0, 7),
            error(nvml.nvmlDeviceGetMemoryErrorCounter, mig, 1, 1, 7), error(nvml.nvmlDeviceGetPowerUsage, mig),
            error(nvml.nvmlDeviceGetUtilizationRates, gpu(2)), error(nvml.nvmlDeviceGetRemappedRows, gpu(2)),
            error(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu(2), 1),
        ])(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(2), 0))""",
    )
    assert found == ["MIG-a", 7, 5, 4, NOT_SUPPORTED, 2, NOT_SUPPORTED, NOT_SUPPORTED, 6]


def test_a_field_can_fail_by_itself(nvml_library: Path, state: VirtualState) -> None:
    state.gpus[0].bad_field, state.gpus[0].bad_code = 82, 999
    fields = "[f.nvmlReturn for f in nvml.nvmlDeviceGetFieldValues(gpu(0), [82, 83])]"
    assert ask(nvml_library, state.path, fields) == [999, 0]


@pytest.mark.parametrize(("generation", "answers"), [(3, [0, 3, 3, 3]), (4, [2, 0, 3, 3]), (5, [2, 3, 0, 0])])
def test_each_generation_of_nvlink_has_its_own_fields(
    nvml_library: Path, state: VirtualState, generation: int, answers: list[int]
) -> None:
    # 46: replays of link 0 before Hopper; 161: Hopper's; 215 and 220: NVLink 5. Scope 20 is no link.
    for link in state.gpus[0].links:
        link.version = generation
    fields = "[f.nvmlReturn for f in nvml.nvmlDeviceGetFieldValues(gpu(0), [(46, 20), (161, 0), (215, 0), (220, 0)])]"
    assert ask(nvml_library, state.path, fields) == answers


def test_versions_of_firmware_are_told(nvml_library: Path, state: VirtualState) -> None:
    found = ask(
        nvml_library,
        state.path,
        "[nvml.nvmlDeviceGetInforomImageVersion(gpu(0)), nvml.nvmlDeviceGetGspFirmwareVersion(gpu(0)).decode()"
        " if isinstance(nvml.nvmlDeviceGetGspFirmwareVersion(gpu(0)), bytes)"
        " else nvml.nvmlDeviceGetGspFirmwareVersion(gpu(0))]",
    )
    assert found == ["G520.0200.00.05", "565.57.01"]
