"""The C header of the virtual node's file, for the face that is a library.

Renew it after each change of the table: ``python -m agent.virtual.header > tests/fakes/nvml/layout.h``.
"""

import ctypes
import sys
from collections.abc import Iterator

from agent.virtual import layout
from agent.virtual.layout import Block

_CONSTANTS = {
    "CORRAL_VERSION": layout.VERSION,
    "CORRAL_MAX_GPUS": layout.MAX_GPUS,
    "CORRAL_MAX_LINKS": layout.MAX_LINKS,
    "CORRAL_MAX_PROCESSES": layout.MAX_PROCESSES,
    "CORRAL_MAX_INSTANCES": layout.MAX_INSTANCES,
    "CORRAL_LOG_SLOTS": layout.LOG_SLOTS,
    "CORRAL_EVENT_SLOTS": layout.EVENT_SLOTS,
}


def _c_fields(block: Block) -> Iterator[str]:
    for field in block.fields:
        scalar = layout.SCALARS.get(field.kind)
        kind = "char" if field.kind == "char" else scalar[1] if scalar else f"corral_{field.kind}_t"
        repeat = f"[{field.count}]" if field.count > 1 or field.kind == "char" else ""
        comment = f" /* {field.doc} */" if field.doc else ""
        yield f"    {kind} {field.name}{repeat};{comment}"


def _c_checks(block: Block) -> Iterator[str]:
    struct, name = layout.STRUCTS[block.name], f"corral_{block.name}_t"
    yield f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");'
    for field in block.fields:
        offset = getattr(struct, field.name).offset
        yield f'_Static_assert(offsetof({name}, {field.name}) == {offset}, "{name}.{field.name}");'


def c_header() -> str:
    """The C header of this table, with a static check of every size and offset."""
    lines = [
        "/* Made from agent/virtual/layout.py by: python -m agent.virtual.header > tests/fakes/nvml/layout.h */",
        "#ifndef CORRAL_LAYOUT_H",
        "#define CORRAL_LAYOUT_H",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        f'#define CORRAL_MAGIC "{layout.MAGIC.decode()}"',
        *(f"#define {name} {value}" for name, value in _CONSTANTS.items()),
    ]
    for block in layout.BLOCKS:
        lines += ["", "typedef struct {", *_c_fields(block), f"}} corral_{block.name}_t;", *_c_checks(block)]
    return "\n".join([*lines, "", "#endif", ""])


if __name__ == "__main__":
    sys.stdout.write(c_header())
