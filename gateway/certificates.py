"""Certificates: the TLS context of the HTTP port, with the files as they are at each handshake."""

import logging
import os
import ssl

from gateway.refusal_log import LoggedHandshake

_LOG = logging.getLogger("gateway")


class Certificates:
    """Of the event loop's thread. Raises OSError, of which ssl.SSLError is one, for bad files."""

    def __init__(self, cert: str, key: str, client_ca: str | None):
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self._stamps = self._stamps_now()
        self._current = self._load()
        # Connections begin with this one; the callback gives them the newest.
        self.context = self._load()
        self.context.sni_callback = self._choose
        self.context.sslobject_class = LoggedHandshake

    def _stamps_now(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in (self._cert, self._key, self._client_ca) if path]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._cert, self._key, password=_no_passphrase)
        if self._client_ca:
            # A client that resumes a session shows no certificate: one of an authority that is gone would do.
            # TLS 1.2 has sessions without tickets too, and Python cannot turn those off.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _choose(self, connection: ssl.SSLObject, _name, _context) -> None:
        stamps = self._stamps_now()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._current = self._load()
                _LOG.info("new certificates are in use: %s", self._cert)
            except OSError as error:  # as between the changes of two files
                _LOG.error("new certificates are not used, those before still are: %s", error)
        connection.context = self._current


def _no_passphrase() -> str:
    raise OSError("the key has a passphrase")


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
