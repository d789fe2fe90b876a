"""What a real node lets be drilled: only what DCGM says can be made up."""

import pytest

from agent.config import AgentConfig
from agent.hardware import RealNode
from vocab.clock import SystemClock
from vocab.errors import Refused


@pytest.fixture
def node(tmp_path):
    config = AgentConfig(node="n1", controller="http://127.0.0.1:9", state_dir=tmp_path, run_dir=tmp_path, dcgm="off")
    return RealNode(config, SystemClock())


@pytest.mark.parametrize("body", [b'{"kind": "xid", "code": 79, "gpu": 0}', b"{", b'{"kind": "dcgm", "gpu": "G"}'])
def test_nothing_breaks_real_hardware_on_purpose(node, body):
    with pytest.raises(Refused, match="this node is real"):
        node.drill(body)


def test_a_drill_of_dcgm_needs_dcgm(node):
    with pytest.raises(Refused, match="DCGM is switched off"):
        node.drill(b'{"kind": "dcgm", "gpu": "GPU-x", "field": 230, "value": 43}')
