"""A real PostgreSQL server for tests: in a temporary folder, on a Unix socket, as a user without privileges."""

import asyncio
import contextlib
import getpass
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

from controller.store.dialects import Postgres
from controller.store.store import Store
from tests.programs import lacking, need

INSTALL = "apt-get install postgresql"
ROLE = "corral"
PORT = 5432  # names the socket; nothing listens on the network
USER = "nobody" if os.geteuid() == 0 else getpass.getuser()  # PostgreSQL refuses root
QUICK = ("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB", "listen_addresses=")


def program(name: str) -> str:
    """A program of PostgreSQL's own folder, of its newest version; without it the test skips (fails in CI)."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    if found:
        return str(found[-1])
    return shutil.which(name) or lacking(f"{name} is not installed; run: {INSTALL}")


class Server:
    """The server. It can be killed and started again; ``fresh`` makes a database with the tables of this version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "password"
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the cluster, with a password that every connection needs."""
        self.secret.write_text(secrets.token_hex(8))
        self.secret.chmod(0o600)
        shutil.chown(self.secret, USER)
        command = [program("initdb"), "-D", str(self.folder / "db"), "-U", ROLE, "-A", "scram-sha-256"]
        command += ["--pwfile", str(self.secret), "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "--wal-segsize=1"]
        subprocess.run(command, check=True, user=USER, env=_environment(), capture_output=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [word for each in QUICK for word in ("-c", each)]
        command = [program("postgres"), "-D", str(self.folder / "db"), "-k", str(self.folder), "-p", str(PORT)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *settings], user=USER, env=_environment(), stdout=log, stderr=log, start_new_session=True
            )
        check = [program("pg_isready"), "-q", "-h", str(self.folder), "-p", str(PORT), "-t", "30"]
        while subprocess.run(check, check=False).returncode != 0:
            if self._process.poll() is not None:
                raise AssertionError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """End it at once, as a power cut does; its children end with it."""
        self._signal(signal.SIGQUIT)

    def stop(self) -> None:
        """End it, connections and all."""
        self._signal(signal.SIGINT)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(60)

    def freeze(self) -> None:
        """Stop all of its processes where they are."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)
        for child in self._children():
            os.kill(child, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        assert self._process is not None
        for child in self._children():
            os.kill(child, signal.SIGCONT)
        os.killpg(self._process.pid, signal.SIGCONT)

    def limit(self, file_bytes: int | str) -> None:
        """Let no file grow beyond this, as on a full disk; the log of writes lies in small files."""
        assert self._process is not None
        for pid in (self._process.pid, *self._children()):
            command = [need("prlimit", "apt-get install util-linux"), "--pid", str(pid), f"--fsize={file_bytes}:"]
            subprocess.run(command, check=False, user=USER, env=_environment())  # a child may have ended meanwhile

    def _children(self) -> list[int]:
        assert self._process is not None
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [int(pid) for path in tasks for pid in path.read_text().split()]

    def dsn(self, name: str) -> str:
        """The address of a database; the password is in ``secret``."""
        return f"postgresql://{ROLE}@/{name}?host={self.folder}&port={PORT}"

    def database(self, name: str) -> Postgres:
        """A database as the store opens it."""
        return Postgres(self.dsn(name), self.secret)

    async def run(self, name: str, statement: str, *values: Any) -> list[Any]:
        """One statement in a database, as its owner."""
        connection = await asyncpg.connect(self.dsn(name), password=self.secret.read_text())
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            await connection.close()

    async def template(self) -> None:
        """Make the migrated database that all others are copies of."""
        await self.run("postgres", "CREATE DATABASE made")
        await (await Store.open(self.database("made"))).close()

    def empty(self) -> str:
        """The name of a new database without tables."""
        return self._create("template1")

    def fresh(self) -> str:
        """The name of a new database with all tables."""
        return self._create("made")

    def _create(self, template: str) -> str:
        name = f"test{next(self._numbers)}"
        command = [program("createdb"), "-h", str(self.folder), "-p", str(PORT), "-U", ROLE, "-T", template, name]
        subprocess.run(
            command, check=True, capture_output=True, env={**os.environ, "PGPASSWORD": self.secret.read_text()}
        )
        return name

    def settings(self, name: str) -> dict[str, Any]:
        """The keys of a controller's configuration that name a database."""
        return {"database": self.dsn(name), "database_password_file": str(self.secret)}


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


def _outlived(folder: Path) -> "subprocess.Popen[bytes]":
    """Ends the server, and takes its folder away, once the end of this pipe is gone: the tests were killed."""
    end = 'read _; p=$(head -n 1 db/postmaster.pid); kill -QUIT "$p"; kill -CONT "$p"; rm -rf "$PWD"'
    return subprocess.Popen(
        ["/bin/sh", "-c", end], cwd=folder, user=USER, env=_environment(), stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


@contextmanager
def server() -> Iterator[Server]:
    """A server that lives as long as the block; its folder is gone afterwards."""
    program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="corral-pg-"))
    shutil.chown(folder, USER)
    made = Server(folder)
    watch = _outlived(folder)
    try:
        made.create()
        made.start()
        with ThreadPoolExecutor(1) as thread:  # the caller's thread may have a loop of its own
            thread.submit(asyncio.run, made.template()).result()
        yield made
    finally:
        made.kill()  # nothing of it is kept
        watch.kill()
        watch.wait()
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
