"""tandem_gateway: the program."""

import asyncio
import ctypes
import functools
import logging
import os
import resource
import signal
import socket
import ssl
import sys

import uvicorn

from gateway.app import make_app
from gateway.config import Config, parse
from gateway.parent_reports import LISTENS, report
from gateway.tracing import JsonFormatter

_BACKLOG = 2048
_KEEP_ALIVE_S = 120  # longer than clients and proxies keep an idle connection, which then close it
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class _Server(uvicorn.Server):
    """Says where it listens; a signal gives requests the time to finish, a second one does not."""

    def __init__(self, config: uvicorn.Config, address: str, drain_timeout_s: float, on_ready,
                 tls: ssl.SSLContext | None):
        super().__init__(config)
        self._tls = tls
        self._address = address
        self._on_ready = on_ready
        self._drain_timeout_s = drain_timeout_s

    def install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        asyncio.get_running_loop().call_later(self._drain_timeout_s, self._force)

    def _force(self) -> None:
        self.force_exit = True

    async def startup(self, sockets=None) -> None:
        self.config.ssl = self._tls
        await super().startup(sockets)
        self._on_ready(self._address)


def _listen(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(_BACKLOG)
    return listener


def _serve(config: Config) -> None:
    listener = _listen(*config.listen)
    if config.check:
        return
    host = f"[{config.listen[0]}]" if ":" in config.listen[0] else config.listen[0]
    address = f"{host}:{listener.getsockname()[1]}"
    server = _Server(
        uvicorn.Config(make_app(config), http="httptools", loop="uvloop", ws="none",
                       log_config=None, access_log=False, server_header=False, lifespan="on",
                       backlog=_BACKLOG, timeout_keep_alive=_KEEP_ALIVE_S), address, config.drain_timeout_s,
        functools.partial(_tell_parent, config.parent_reports_file) if config.parent_pid else _print_ready,
        config.certificates and config.certificates.context)
    server.run(sockets=[listener])


def _print_ready(address: str) -> None:
    print(f"ready: HTTP on {address}", flush=True)


def _tell_parent(reports_file: str | None, address: str) -> None:
    """Stdout is the parent's."""
    logging.getLogger("gateway").info("HTTP on %s", address)
    report(reports_file, LISTENS)


def _die_with(parent_pid: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        sys.exit(1)  # it died before prctl


def _raise_descriptor_limit() -> None:
    """A request has a socket; the usual soft limit is 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> int:
    config = parse(sys.argv[1:])
    _raise_descriptor_limit()
    if config.parent_pid:
        _die_with(config.parent_pid)
    logging.basicConfig(level=config.log_level.upper(), stream=sys.stderr,
                        format="tandem_gateway: %(levelname)s: %(message)s")
    if config.log_format == "json":
        logging.getLogger().handlers[0].setFormatter(JsonFormatter())
    # Not the parent of both: uvicorn looks at each one's own level for its costly traces.
    for name in ("uvicorn.error", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.ERROR)  # bytes that are no HTTP are no news
    try:
        _serve(config)
    except OSError as error:
        print(f"tandem_gateway: --listen {config.listen[0]}:{config.listen[1]}: "
              f"{error.strerror or error}", file=sys.stderr)
        return 1
    return 0
