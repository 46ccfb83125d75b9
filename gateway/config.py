"""The gateway's settings, from its command line."""

import argparse
import dataclasses
import re

from gateway.access import Access
from gateway.certificates import Certificates
from gateway.connection_flags import (add_connection_flags, is_loopback, read_access,
                                      read_token)
from gateway.reasoning import MARKERS
from gateway.tool_parsers import PARSERS
from gateway.version import VERSION


@dataclasses.dataclass(frozen=True)
class Config:
    servers: list[str]
    listen: tuple[str, int]
    allowed_origins: list[str]
    served_model_name: str | None
    chat_template: str | None  # text
    tool_parser: str | None
    reasoning_parser: str | None  # "none": thoughts are content
    max_body_bytes: int
    max_requests: int
    request_timeout_s: float
    template_timeout_s: float
    drain_timeout_s: float
    log_level: str
    log_format: str
    check: bool
    parent_pid: int | None
    parent_reports_file: str | None
    access: Access = Access()
    certificates: Certificates | None = None  # None: plain text


def parse(arguments: list[str]) -> Config:
    """Exits with 2 and one line for bad usage."""
    parser = _parser()
    found = parser.parse_args(arguments)
    template = None
    if found.chat_template is not None:
        try:
            with open(found.chat_template, encoding="utf-8") as file:
                template = file.read()
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"--chat-template {found.chat_template}: {error}")
    _check_exposure(parser, found)
    return Config(
        access=dataclasses.replace(
            read_access(parser, found, found.server or [], "server-", forwards=True),
            parent_token=read_token(parser, "--parent-token-file", found.parent_token_file)),
        certificates=_certificates(parser, found),
        servers=found.server or ["127.0.0.1:50051"], listen=found.listen, allowed_origins=found.allowed_origin or [],
        served_model_name=found.served_model_name, chat_template=template,
        tool_parser=found.tool_parser, reasoning_parser=found.reasoning_parser, max_body_bytes=found.max_body_bytes,
        max_requests=found.max_requests, request_timeout_s=found.request_timeout,
        template_timeout_s=found.template_timeout, drain_timeout_s=found.drain_timeout,
        log_level=found.log_level, log_format=found.log_format, check=found.check, parent_pid=found.parent_pid,
        parent_reports_file=found.parent_reports_file)


def _check_exposure(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Other machines reach this one only by TLS."""
    host, port = found.listen
    if not (found.insecure or found.tls_cert or is_loopback(host)):
        parser.error(f"--listen {host}:{port}: other machines reach this address, so it needs "
                     "--tls-cert and --tls-key; or --insecure")


def _certificates(parser: argparse.ArgumentParser,
                  found: argparse.Namespace) -> Certificates | None:
    if (found.tls_cert is None) != (found.tls_key is None):
        parser.error("--tls-cert and --tls-key are given together")
    if found.tls_cert is None:
        if found.tls_client_ca:
            parser.error("--tls-client-ca needs --tls-cert")
        return None
    try:
        return Certificates(found.tls_cert, found.tls_key, found.tls_client_ca)
    except OSError as error:
        return parser.error(f"--tls-cert {found.tls_cert}: {error.strerror or error}")


class _Parser(argparse.ArgumentParser):

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("tandem_gateway", allow_abbrev=False,
                     description="OpenAI's HTTP API in front of running Tandem servers.")
    add = parser.add_argument
    add("--server", action="append", metavar="HOST:PORT",
        help="a coordinator (127.0.0.1:50051); may be repeated: the least loaded one is asked")
    add("--listen", type=_address, default=("127.0.0.1", 8080), metavar="HOST:PORT",
        help="of the HTTP API (127.0.0.1:8080); port 0: any free")
    add("--tls-cert", metavar="FILE",
        help="PEM file with the certificate chain of the HTTP API; without, it is plain text")
    add("--tls-key", metavar="FILE", help="PEM file with its key; a change of these is noticed")
    add("--tls-client-ca", metavar="FILE",
        help="PEM file with authorities: clients must have a certificate of one of them")
    add_connection_flags(parser, "server-")
    add("--allowed-origin", action="append", type=_origin, metavar="ORIGIN",
        help="a site whose pages may use the HTTP API from a browser, as https://chat.example.org (none); may be "
             "repeated; *: any site")
    add("--served-model-name", help="the model's name for clients (the file's)")
    add("--chat-template", metavar="FILE", help="a Jinja template instead of the model's")
    add("--tool-parser", choices=sorted(PARSERS),
        help="the form of the model's tool calls (by its chat template)")
    add("--reasoning-parser", choices=(*sorted(MARKERS), "none"),
        help="what the model's thoughts are between (by its chat template); none: they are content")
    add("--max-body-bytes", type=_positive, default=8 << 20, help="of a request (%(default)s)")
    add("--max-requests", type=_positive, default=4096,
        help="HTTP requests at once (%(default)s); others get 429")
    add("--request-timeout", type=_seconds, default=3600, metavar="S",
        help="of one generation (%(default)s)")
    add("--template-timeout", type=_seconds, default=2, metavar="S",
        help="of rendering a chat template (%(default)s)")
    add("--drain-timeout", type=_seconds, default=30, metavar="S",
        help="how long requests have to finish after SIGTERM or SIGINT (%(default)s)")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info",
        help="lines below it are not written (%(default)s)")
    add("--log-format", choices=("text", "json"), default="text",
        help="lines of text, or of JSON (%(default)s)")
    add("--check", action="store_true",
        help="only find out whether it could serve: exit code 0, or a line that says why not")
    add("--parent-pid", type=_positive, metavar="PID",
        help="exit when this parent process does")
    add("--parent-token-file", metavar="FILE", help=argparse.SUPPRESS)
    add("--parent-reports-file", metavar="FILE", help=argparse.SUPPRESS)
    add("--version", action="version", version=f"tandem_gateway {VERSION}")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host.strip("[]"), int(port)


def _origin(text: str) -> str:
    if text != "*" and not re.fullmatch(r"https?://[^/\s]+", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not *, or like https://HOST[:PORT]")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds up to 86400")
    return value
