"""tandem_gateway: the program."""

import asyncio
import logging
import signal
import socket
import sys

import uvicorn
from gateway.app import make_app
from gateway.config import Config, parse

_BACKLOG = 2048


class _Server(uvicorn.Server):
    """Says when it listens; a signal gives requests the time to finish, a second one does not."""

    def __init__(self, config: uvicorn.Config, address: str, drain_timeout_s: float):
        super().__init__(config)
        self._address = address
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
        await super().startup(sockets)
        print(f"ready: HTTP on {self._address}", flush=True)


def _listen(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(_BACKLOG)
    return listener


def _serve(config: Config) -> None:
    listener = _listen(*config.listen)
    host = f"[{config.listen[0]}]" if ":" in config.listen[0] else config.listen[0]
    address = f"{host}:{listener.getsockname()[1]}"
    server = _Server(
        uvicorn.Config(make_app(config), http="httptools", loop="uvloop", ws="none",
                       log_config=None, access_log=False, server_header=False, lifespan="on",
                       backlog=_BACKLOG), address, config.drain_timeout_s)
    server.run(sockets=[listener])


def main() -> int:
    config = parse(sys.argv[1:])
    logging.basicConfig(level=config.log_level.upper(), stream=sys.stderr,
                        format="tandem_gateway: %(levelname)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        _serve(config)
    except OSError as error:
        print(f"tandem_gateway: --listen {config.listen[0]}:{config.listen[1]}: "
              f"{error.strerror or error}", file=sys.stderr)
        return 1
    return 0
