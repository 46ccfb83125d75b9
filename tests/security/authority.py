"""Certificates made for one test, by openssl: nothing secret is kept in the sources."""

import os
import subprocess
import tempfile

_CONFIG = """[ca]
default_ca = test
[test]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""
_VALID = ("20200101000000Z", "21200101000000Z")
EXPIRED = ("20200101000000Z", "20200102000000Z")


def _openssl(*arguments):
    subprocess.run(("openssl", *arguments), check=True, capture_output=True, timeout=60)


def _new_key(path):
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


class Authority:
    """`ca` is the path of its own certificate."""

    def __init__(self, name="an authority"):
        self.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self.ca = os.path.join(self.folder, "ca.pem")
        key = os.path.join(self.folder, "ca.key")
        _new_key(key)
        _openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN={name}", "-days", "30",
                 "-addext", "basicConstraints=critical,CA:TRUE", "-out", self.ca)
        open(os.path.join(self.folder, "index"), "w").close()
        with open(os.path.join(self.folder, "serial"), "w", encoding="ascii") as file:
            file.write("1000\n")
        with open(os.path.join(self.folder, "config"), "w", encoding="ascii") as file:
            file.write(_CONFIG.format(folder=self.folder))

    def issue(self, *names, dates=_VALID, path=None):
        """(certificate, key): files of a new certificate for these names, as DNS:a or IP:1.2.3.4."""
        base = path or tempfile.mktemp(dir=self.folder)
        _new_key(base + ".key")
        _openssl("req", "-new", "-key", base + ".key", "-subj", "/CN=test", "-addext",
                 "subjectAltName=" + ",".join(names), "-out", base + ".csr")
        _openssl("ca", "-batch", "-notext", "-config", os.path.join(self.folder, "config"),
                 "-startdate", dates[0], "-enddate", dates[1], "-in", base + ".csr", "-out",
                 base + ".pem")
        return base + ".pem", base + ".key"
