"""The flags by which a program reaches servers: TLS, and a token of its own."""

import argparse
import ipaddress

import grpc

from gateway.access import Access


def add_connection_flags(parser: argparse.ArgumentParser, prefix: str = "") -> None:
    add = parser.add_argument
    add(f"--{prefix}tls", dest="to_tls", action="store_true",
        help="TLS to the server, with the authorities that the system trusts")
    add(f"--{prefix}tls-ca", dest="to_ca", metavar="FILE",
        help="the same with those of this PEM file instead")
    add(f"--{prefix}tls-client-cert", dest="to_cert", metavar="FILE",
        help="PEM file with the certificate chain to show to the server")
    add(f"--{prefix}tls-client-key", dest="to_key", metavar="FILE", help="PEM file with its key")
    add("--token-file", metavar="FILE", help="file with this program's own bearer token")
    add("--insecure", action="store_true",
        help="send tokens to other machines also in plain text, and listen for them so")


def read_access(parser: argparse.ArgumentParser, found: argparse.Namespace, servers: list[str],
                prefix: str = "", *, forwards: bool = False) -> Access:
    """Exits with 2 and one line for what cannot be used. `forwards`: it passes others' tokens on."""
    if (found.to_cert is None) != (found.to_key is None):
        parser.error(f"--{prefix}tls-client-cert and --{prefix}tls-client-key are given together")
    has_tls = bool(found.to_tls or found.to_ca or found.to_cert)
    for server in servers:
        if has_tls or found.insecure or not (forwards or found.token_file):
            break
        if not is_loopback(server.rpartition(":")[0].strip("[]")):
            parser.error(f"tokens go to another machine, {server}, only by --{prefix}tls or "
                         f"--{prefix}tls-ca, or with --insecure")
    tls = None
    if has_tls:
        tls = grpc.ssl_channel_credentials(
            _read(parser, f"--{prefix}tls-ca", found.to_ca),
            _read(parser, f"--{prefix}tls-client-key", found.to_key),
            _read(parser, f"--{prefix}tls-client-cert", found.to_cert))
    return Access(tls, read_token(parser, "--token-file", found.token_file))


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(parser: argparse.ArgumentParser, flag: str, path: str | None) -> str | None:
    """The file's first line."""
    content = _read(parser, flag, path)
    if content is None:
        return None
    token = content.partition(b"\n")[0].decode(errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable():
        parser.error(f"{flag} {path}: it holds no token")
    return token


def _read(parser: argparse.ArgumentParser, flag: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        return parser.error(f"{flag} {path}: {error.strerror}")
