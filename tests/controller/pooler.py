"""A real pgbouncer in transaction mode before a test's PostgreSQL."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controller.postgres import PORT, ROLE, USER, Server
from tests.programs import need

SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = {door}
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 12
logfile = {folder}/log
pidfile = {folder}/pid
"""
DOOR = 6432


@contextmanager
def pooler(server: Server) -> Iterator[Path]:
    """The folder of the pooler's socket."""
    program = need("pgbouncer", "apt-get install pgbouncer")
    folder = server.folder / "pooler"
    folder.mkdir(exist_ok=True)
    text = SETTINGS.format(host=server.folder, port=PORT, folder=folder, door=DOOR)
    (folder / "pgbouncer.ini").write_text(text)
    (folder / "users").write_text(f'"{ROLE}" "{server.secret.read_text()}"\n')
    for path in (folder, folder / "pgbouncer.ini", folder / "users"):
        shutil.chown(path, USER)
    process = subprocess.Popen(
        [program, "-q", str(folder / "pgbouncer.ini")], user=USER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 20
        while not (folder / f".s.PGSQL.{DOOR}").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield folder
    finally:
        process.terminate()
        process.wait(20)


def through(server: Server, folder: Path, name: str) -> dict[str, Any]:
    """A controller's keys for a database behind the pooler."""
    direct = server.settings(name)
    address = f"postgresql://{ROLE}@/{name}?host={folder}&port={DOOR}"
    return {**direct, "database": address, "pooler": True}
