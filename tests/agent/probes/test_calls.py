import msgspec

from agent.probes.calls import CallsProbe
from tests.agent.made import call, inventory, scene, uuid
from vocab.observations import ClockStep, Restart

READ = "nvmlDeviceGetTemperature"


class Watch:
    def __init__(self, gpus=tuple(range(8))):
        self.scene, self.probe = scene(gpus=gpus), CallsProbe()

    def see(self, *observations):
        found = []
        for seen in observations:
            found += self.until(seen.at)
            found += self.probe.observe(seen, self.scene, seen.at)
        return found

    def until(self, at):
        found = []
        while (due := self.probe.next_deadline()) is not None and due <= at:
            found += self.probe.tick(self.scene, due)
        return [(type(v).__name__, v.code, v.gpu) for v in found]


def test_where_a_hung_process_stood_is_evidence_of_what_is_said():
    watch, seen = Watch(), call(0.0, "started", READ, 3)
    watch.see(seen, msgspec.structs.replace(seen, at=6.0, stacks="77 gpu-3 D wchan=nv_wait"))
    (slow,) = watch.probe.tick(watch.scene, 10.0)
    (hung,) = watch.probe.tick(watch.scene, 120.0)
    for found in (slow, hung):
        assert [proof.line for proof in found.evidence][1:] == ["77 gpu-3 D wchan=nv_wait"]


def hung(watch, at=1_000.0):
    return [gpu for kind, code, gpu in watch.until(at) if code == "probe_hung" and kind == "Finding"]


def test_one_call_a_gpu_is_enough_however_often_it_is_told():
    watch = Watch()
    watch.see(*(call(float(t), "started", READ, 3) for t in range(0, 110, 10)))
    assert len(watch.probe.waiting) == 1
    assert hung(watch) == [uuid(3)]


def test_two_gpus_hang_each_for_itself_while_others_answer():
    watch = Watch()
    watch.see(call(0.0, "started", READ, 3), call(1.0, "started", READ, 4))
    assert hung(watch) == [uuid(3), uuid(4)]


def test_if_all_wait_only_the_first_is_named():
    watch = Watch((0, 1))
    watch.see(call(0.0, "started", READ, 1), call(0.5, "started", READ, 0))
    assert hung(watch) == [uuid(1)]


def test_the_only_gpu_of_a_node_hangs_like_any_other():
    watch = Watch((0,))
    watch.see(call(0.0, "started", READ, 0))
    assert hung(watch) == [uuid(0)]


def test_a_failed_call_has_come_back():
    watch = Watch()
    watch.see(call(0.0, "started", READ, 3), call(45.0, "failed", READ, 3, error="TIMEOUT"))
    assert hung(watch) == []


def test_the_time_of_a_pause_does_not_count():
    watch = Watch()
    watch.see(call(0.0, "started", READ, 3))
    watch.probe.observe(ClockStep(at=0.0, pause_s=350.0), watch.scene, 0.0)
    assert watch.probe.next_deadline() == 360.0


def test_calls_of_an_agent_that_is_gone_are_not_waited_for():
    watch = Watch()
    watch.see(call(0.0, "started", READ, 3), Restart(at=5.0, of="agent"))
    assert watch.probe.next_deadline() is None


def test_a_hung_one_stays_hung_over_a_restart_of_the_agent():
    watch = Watch()
    watch.see(call(0.0, "started", READ, 3))
    assert hung(watch, 200.0) == [uuid(3)]
    watch.see(Restart(at=201.0, of="agent"))
    assert [v.code for v in watch.probe.observe(call(300.0, "returned", READ, 3), watch.scene, 300.0)] == ["probe_hung"]


def test_a_reboot_ends_all_calls():
    watch = Watch()
    watch.see(inventory(0.0), call(0.0, "started", READ, 3), inventory(5.0, boot_id="b2"))
    assert hung(watch) == []


def test_a_reboot_ends_what_was_said_of_a_gpu_that_the_node_does_not_list():
    watch = Watch(gpus=(0,))
    watch.see(inventory(0.0, (0,)), call(1.0, "started", READ, 3))
    assert hung(watch, 400.0) == [uuid(3)]
    over = watch.see(inventory(500.0, (0,), boot_id="another"))
    assert [(type(v).__name__, v.code, v.gpu) for v in over] == [
        ("Clear", "probe_hung", uuid(3)),
        ("Clear", "probe_slow", uuid(3)),
    ]


def test_one_slow_call_in_five_is_one_condition():
    watch = Watch()
    told = []
    for n in range(5):
        told += watch.see(call(n * 60.0, "started", READ, 3), call(n * 60.0 + 12, "returned", READ, 3))
    told += watch.until(10_000.0)
    assert told.count(("Finding", "probe_slow", uuid(3))) == 1
    assert told.count(("Clear", "probe_slow", uuid(3))) == 1
