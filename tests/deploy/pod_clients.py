"""Clients of a pod's server, as another pod would have them: `tandem` over gRPC, and HTTP."""

import http.client
import json
import re
import ssl
import subprocess

import pod as pods

GRPC, HTTP, METRICS = 50051, 8080, 9464  # as the manifests have them


class Clients:
    """`ca`: a file of authorities; without it all is plain text. `token`: a file. `name`: whose certificate the server has."""

    def __init__(self, pod, ca=None, token=None, name="tandem"):
        self.pod, self.token, self.name = pod, token, name
        self.flags = ["--server", f"127.0.0.1:{GRPC}"]
        self.flags += ["--tls-ca", ca, "--tls-server-name", name] if ca else []
        self.flags += ["--token-file", token] if token else []
        self.tls = ssl.create_default_context(cafile=ca) if ca else None

    def tandem(self, *words):
        """`tandem` to its end."""
        return subprocess.run(self._tandem(words), capture_output=True, text=True, timeout=pods.DEADLINE, check=False)

    def start_tandem(self, *words):
        """`tandem` with pipes to its input and output."""
        return subprocess.Popen(self._tandem(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _tandem(self, words):
        return self.pod.in_network(["client/tandem", *words, *self.flags])

    def send(self, path, body=None, port=HTTP):
        """A connection whose request is sent; its answer is still to be read."""
        connection = http.client.HTTPConnection(self.name)
        connection.sock = self.pod.connect(port)
        if self.tls and port == HTTP:
            connection.sock = self.tls.wrap_socket(connection.sock, server_hostname=self.name)
        headers = {}
        if self.token:
            with open(self.token, encoding="ascii") as file:
                headers["Authorization"] = "Bearer " + file.read().strip()
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body), headers)
        return connection

    def ask(self, path, body=None, port=HTTP):
        """(status, content) of a whole answer, JSON parsed."""
        connection = self.send(path, body, port)
        try:
            answer = connection.getresponse()
            content = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, json.loads(content) if is_json else content.decode()
        finally:
            connection.close()

    def http_serves(self):
        """Whether the HTTP port is open, and its gateway knows that the server serves."""
        try:
            return self.ask("/health")[0] == 200
        except ConnectionError:
            return False

    def received(self):
        """How many requests have reached the engine."""
        status, text = self.ask("/metrics", port=METRICS)
        assert status == 200, text
        return int(float(re.search(r"(?m)^tandem_requests_total (\S+)$", text)[1]))


def events(connection):
    """The data of a stream's events, read to its end; "[DONE]" as it is."""
    try:
        answer = connection.getresponse()
        content = answer.read().decode()
        assert answer.status == 200, content
    finally:
        connection.close()
    parts = content.split("\n\n")
    assert parts.pop() == "" and all(part.startswith("data: ") for part in parts), content
    return [part[6:] if part == "data: [DONE]" else json.loads(part[6:]) for part in parts]
