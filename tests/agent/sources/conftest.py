from tests.fakes.nvml.fixture import nvml_library

__all__ = ["nvml_library"]
