"""A server of OpenAI's completions API whose tokens no model computed, for load_program_test.py.

Each answer is a stream of server-sent events, in chunks that do not respect the events' borders.
"""

from __future__ import annotations

import http.server
import json
import ssl
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *args: object) -> None:
        """Says nothing."""

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer(200, json.dumps({"data": [{"id": "stub"}]}).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = self.server.add(request)
        if self.server.refuse_every and number % self.server.refuse_every == 0:
            self.answer(429, b"the queue is full")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        stream = self.stream(request)
        for begin in range(0, len(stream), 97):
            piece = stream[begin:begin + 97]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def stream(self, request: dict) -> bytes:
        count = request["max_tokens"]
        events = [{"choices": [{"text": "x", "finish_reason": None}]} for _ in range(count - 1)]
        if not self.server.cut_streams:
            events.append({"choices": [{"text": "x", "finish_reason": "length"}]})
            events.append({"choices": [], "usage": {"prompt_tokens": len(request["prompt"]),
                                                    "completion_tokens": count}})
        text = ": a comment\n\n" + "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return (text if self.server.cut_streams else text + "data: [DONE]\n\n").encode()


class Server(http.server.ThreadingHTTPServer):
    """On a free port of this machine. `requests` are those that were sent to it."""
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, refuse_every: int = 0, cut_streams: bool = False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.refuse_every = refuse_every
        self.cut_streams = cut_streams
        self.requests: list[dict] = []
        self.lock = threading.Lock()

    def add(self, request: dict) -> int:
        """The request's number, from 1."""
        with self.lock:
            self.requests.append(request)
            return len(self.requests)

    def handle_error(self, *args: object) -> None:
        """A client that cancels is no error."""


def start(refuse_every: int = 0, cut_streams: bool = False,
          tls: ssl.SSLContext | None = None) -> Server:
    """A server that serves until its shutdown(), with `tls` over HTTPS."""
    server = Server(refuse_every, cut_streams)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
