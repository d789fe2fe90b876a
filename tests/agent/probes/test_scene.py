from agent.probes.scene import Scene
from vocab.observations import GpuIdentity, NodeSeen

NODE = NodeSeen(at=1.0, node="n1", boot_id="b1", gpus=(GpuIdentity(uuid="GPU-a", index=0, pci="0000:19:00"),))


def test_an_empty_name_names_no_gpu() -> None:
    scene = Scene("n1")
    scene.see(NODE)
    assert scene.named(gpu="", pci=None, index=None) is None
    assert scene.named(gpu="", pci="0000:19:00", index=None) == "GPU-a"
    assert scene.named(gpu="GPU-b", pci=None, index=0) == "GPU-b", "a GPU may be named that the inventory does not have"
