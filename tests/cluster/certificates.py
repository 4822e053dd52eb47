"""Keys and certificates of a test cluster, made by openssl."""
import pathlib
import subprocess

DAYS = "30"


class Authority:
    """A certificate authority in `folder`; its certificate is <name>.crt there."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.certificate = self.folder / f"{name}.crt"
        self._key = self.folder / f"{name}.key"
        self._request(self.certificate, self._key, f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, subject, addresses=()):
        """(certificate, key) of a client, and where addresses ("IP:…", "DNS:…") are given of a server."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        usage = "clientAuth,serverAuth" if addresses else "clientAuth"
        names = ["-addext", "subjectAltName=" + ",".join(addresses)] if addresses else []
        self._request(certificate, key, subject, "-CA", str(self.certificate), "-CAkey", str(self._key),
                      "-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"extendedKeyUsage={usage}", *names)
        return certificate, key

    @staticmethod
    def _request(certificate, key, subject, *options):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256", "-days", DAYS,
            "-keyout", str(key), "-out", str(certificate), "-subj", subject, *options)


def key_pair(folder, name):
    """(public, private) key that service account tokens are signed with."""
    public, private = pathlib.Path(folder) / f"{name}.pub", pathlib.Path(folder) / f"{name}.key"
    run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(private))
    run("pkey", "-in", str(private), "-pubout", "-out", str(public))
    return public, private


def run(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")
