"""An authority of the test and the certificates that it gives, made by the openssl program."""

import subprocess
from pathlib import Path

from tests.programs import need

LOCAL = "IP:127.0.0.1,DNS:localhost"


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder = folder
        self.openssl = need("openssl", "apt-get install openssl")
        folder.mkdir(parents=True, exist_ok=True)
        self.cert = folder / "ca.pem"
        self.key = folder / "ca.key"
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert,
                  "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip

    def _run(self, *words: object) -> None:
        subprocess.run([self.openssl, *map(str, words)], check=True, capture_output=True)

    def give(
        self, name: str, *, stem: str | None = None, sans: str = "IP:127.0.0.1,DNS:localhost"
    ) -> tuple[Path, Path]:
        """A certificate and key for ``name``, which also stands among its DNS names."""
        stem = stem or name
        cert, key, request = (self.folder / f"{stem}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.folder / f"{stem}.cnf"
        extensions.write_text(f"subjectAltName={sans},DNS:{name}\nextendedKeyUsage=serverAuth,clientAuth\n")
        self._run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", key, "-out", request)  # fmt: skip
        self._run("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", "2",
                  "-extfile", extensions, "-out", cert)  # fmt: skip
        key.chmod(0o600)
        return cert, key
