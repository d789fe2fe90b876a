"""The kernels run in Triton's interpreter here: it must be asked for before they are defined."""

import importlib.util
import os

import pytest

os.environ["TRITON_INTERPRET"] = "1"

if importlib.util.find_spec("triton") is None and os.environ.get("CI") != "true":
    pytest.skip("the kernels need Triton: pip install triton", allow_module_level=True)
