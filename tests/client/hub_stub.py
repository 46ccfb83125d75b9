"""A model hub for tests: the tree and resolve endpoints over HTTP, with faults on request."""

import hashlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "acme/tiny-GGUF"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def entry(path, content, **changes):
    """A file of a listing, as a large one."""
    lfs = {"oid": sha256(content), "size": len(content), "pointerSize": 133}
    lfs.update(changes)
    return {"type": "file", "oid": "0" * 40, "size": lfs["size"], "path": path, "lfs": lfs}


class Reply:
    """What a fault answers instead: status, headers, body, and how many bytes of it to send before
    the connection is cut (None: all) or held until `gate` is set. With `drip`, so many bytes of the
    body at a time, ten times a second."""

    def __init__(self, status=200, body=b"", headers=(), cut_after=None, gate=None, drip=0):
        self.status = status
        self.body = body
        self.headers = dict(headers)
        self.cut_after = cut_after
        self.gate = gate
        self.drip = drip


class Hub:
    """Serves `files` (path: bytes) of one repository on a free port of 127.0.0.1.

    `on_tree(request)` and `on_file(request, path, usual)` may return a Reply instead of the usual
    one; `on_other(request)` answers all other paths. `requests` records (method, path, headers)."""

    def __init__(self, files=None):
        self.files = dict(files or {})
        self.listing = None  # instead of that of `files`
        self.commit = COMMIT
        self.revisions = ["main", COMMIT]  # under which the files are listed and served
        self.on_tree = lambda request: None
        self.on_file = lambda request, path, usual: None
        self.on_other = lambda request: Reply(404, b"Entry not found")
        self.answers_head = True
        self.requests = []
        self.arrived = threading.Event()  # the first byte of a gated reply was sent
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                hub._answer(self)

            def do_HEAD(self):
                hub._answer(self)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # clients that go away are part of the tests

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def of(self, method, part):
        """The recorded requests with `part` in their path."""
        return [r for r in self.requests if r[0] == method and part in r[1]]

    def usual_file(self, request, content):
        """The file as a well-behaved server sends it, with ranges."""
        headers = {"X-Repo-Commit": self.commit, "X-Linked-ETag": f'"{sha256(content)}"',
                   "Accept-Ranges": "bytes"}
        wanted = request.headers.get("Range")
        if not wanted:
            return Reply(200, content, headers)
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Reply(206, content[start:], headers)

    def _reply(self, request):
        url = urlsplit(request.path)
        if url.path in (f"/api/models/{REPO}/tree/{name}" for name in self.revisions):
            if reply := self.on_tree(request):
                return reply
            assert parse_qs(url.query)["recursive"] == ["true"]
            listing = self.listing
            if listing is None:
                listing = [entry(path, content) for path, content in self.files.items()]
            return Reply(200, json.dumps(listing).encode())
        for revision in self.revisions:
            prefix = f"/{REPO}/resolve/{revision}/"
            path = unquote(url.path.removeprefix(prefix))
            if url.path.startswith(prefix) and path in self.files:
                usual = self.usual_file(request, self.files[path])
                return self.on_file(request, path, usual) or usual
        return self.on_other(request)

    def _answer(self, request):
        self.requests.append((request.command, request.path, dict(request.headers)))
        reply = self._reply(request)
        if request.command == "HEAD" and not self.answers_head:
            reply = Reply(501)
        request.send_response(reply.status)
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        for name, value in headers.items():
            if value is not None:
                request.send_header(name, value)
        request.end_headers()
        if request.command == "HEAD":
            return
        for start in range(0, len(reply.body) if reply.drip else 0, reply.drip or 1):
            request.wfile.write(reply.body[start:start + reply.drip])
            request.wfile.flush()
            time.sleep(0.1)
        if reply.drip:
            return
        count = len(reply.body) if reply.cut_after is None else reply.cut_after
        request.wfile.write(reply.body[:count])
        request.wfile.flush()
        if reply.gate is not None:
            self.arrived.set()
            reply.gate.wait(60)
            request.wfile.write(reply.body[count:])
        elif reply.cut_after is not None or headers["Content-Length"] != str(len(reply.body)):
            request.close_connection = True


def main(path):
    """Serves one file as a program does: prints the address, ends with its standard input."""
    with open(path, "rb") as file:
        hub = Hub({"tiny-Q8_0.gguf": file.read()})
    print(hub.url, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
