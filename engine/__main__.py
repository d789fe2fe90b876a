"""``python -m engine``: one replica."""

import asyncio
import logging
import os
import sys

from engine.config import parse
from engine.process import complain, load_when_asked, serve
from vocab.errors import CorralError
from wire import logs


def main() -> int:
    """Run a replica; the exit code of the process (docs/engine.md lists them)."""
    try:
        config = parse(sys.argv[1:])
        logs.set_up(json=config.log_json)
        code, ended = asyncio.run(serve(config, load_when_asked(config)))
    except CorralError as error:
        complain(str(error))
        code, ended = error.exit_code, False
    if not ended:  # a thread that still loads or hangs in a kernel would keep, or crash, the interpreter's own exit
        logging.shutdown()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
