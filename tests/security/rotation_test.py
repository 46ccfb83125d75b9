"""Certificates and tokens that change under load: nothing that may go on is dropped."""

import http.client
import json
import os
import shutil
import ssl
import socket
import sys
import threading
import unittest

sys.path.insert(0, "tests/security")
import authority  # noqa: E402
import edge  # noqa: E402
from edge import programs  # noqa: E402

import grpc  # noqa: E402
from tandem.v1 import generation_pb2 as api, generation_pb2_grpc  # noqa: E402

NEW_USER = "another-token-of-the-user"


def serial(address, ca):
    """The number of the certificate that a new connection is shown."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection((host, int(port)), timeout=programs.PATIENCE_S) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            return connection.getpeercert()["serialNumber"]


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def request(max_tokens):
    return api.GenerateRequest(text="Story:", sampling=api.SamplingParams(
        max_tokens=max_tokens, ignore_eos=True, temperature=0))


class Load:
    """Threads that generate, each time on a new connection, until stopped; `failures` in words."""

    def __init__(self, address, ca, token, threads=4):
        with open(ca, "rb") as file:
            self.credentials = grpc.ssl_channel_credentials(file.read())
        self.address = address
        self.token = token
        self.failures = []
        self.done = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def channel(self):
        # A subchannel pool of its own: each channel makes its own connection.
        return grpc.secure_channel(self.address, self.credentials,
                                   options=[("grpc.use_local_subchannel_pool", 1),
                                            ("grpc.enable_http_proxy", 0)])

    def generate(self):
        with self.channel() as channel:
            stub = generation_pb2_grpc.GenerationStub(channel)
            answer = list(stub.Generate(request(8), metadata=bearer(self.token),
                                        timeout=programs.PATIENCE_S))
            assert answer[-1].usage.completion_tokens == 8, answer

    def _run(self):
        while not self._stop.is_set():
            try:
                self.generate()
                self.done += 1
            except (grpc.RpcError, AssertionError, OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))

    def more(self, count=8):
        """Until so many more have ended well."""
        target = self.done + count
        programs.until(lambda: self.done >= target or self.failures, "the load stands still")

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(programs.PATIENCE_S)


class HttpLoad(Load):
    """The same over HTTP."""

    def __init__(self, address, ca, token):
        self.context = ssl.create_default_context(cafile=ca)
        super().__init__(address, ca, token)

    def stream(self, max_tokens):
        """The answer to a request for a stream, and its connection."""
        connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=programs.PATIENCE_S)
        body = {"prompt": "Story:", "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Authorization": f"Bearer {self.token}"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        return response, connection

    def generate(self):
        response, connection = self.stream(8)
        events = response.read()
        connection.close()
        assert events.endswith(b"data: [DONE]\n\n"), events


class RotationTest(unittest.TestCase):

    def setUp(self):
        self.authority = authority.Authority()
        self.folder = self.authority.folder
        self.cert, self.key = self.authority.issue(
            *edge.SERVER_NAMES, path=os.path.join(self.folder, "server"))
        self.tokens = edge.tokens()
        self.server = programs.start_coordinator("--tls-cert", self.cert, "--tls-key", self.key,
                                                 "--tokens", self.tokens)
        self.addCleanup(self.server.kill)
        self.load = Load(self.server.address, self.authority.ca, edge.USER)
        self.addCleanup(self.load.stop)
        self.load.more()

    def check_nothing_failed(self):
        self.load.more()
        self.assertEqual(self.load.failures, [], self.server.log())

    def test_certificates_file_by_file(self):
        """Between the two renames certificate and key do not belong together."""
        for _ in range(4):
            before = serial(self.server.address, self.authority.ca)
            cert, key = self.authority.issue(*edge.SERVER_NAMES)
            os.rename(cert, self.cert)
            self.load.more()
            self.assertEqual(serial(self.server.address, self.authority.ca), before)
            os.rename(key, self.key)
            self.assertNotEqual(serial(self.server.address, self.authority.ca), before)
            self.check_nothing_failed()
        self.assertEqual(self.server.log().count("new certificates are in use"), 4)
        self.assertIn("the key of another certificate", self.server.log())

    def test_unusable_files_change_nothing(self):
        before = serial(self.server.address, self.authority.ca)
        for content in ("", "nothing"):
            edge.write(content, self.cert)
            self.assertEqual(serial(self.server.address, self.authority.ca), before)
        os.remove(self.key)
        self.assertEqual(serial(self.server.address, self.authority.ca), before)
        self.check_nothing_failed()

    def test_tokens(self):
        with self.load.channel() as channel:
            stub = generation_pb2_grpc.GenerationStub(channel)
            stream = stub.Generate(request(400), metadata=bearer(edge.USER),
                                   timeout=programs.PATIENCE_S)
            tokens = len(next(stream).token_ids)
            # Both for a while, so that clients can change theirs.
            edge.write(f"user generate {edge.USER}\nnew generate {NEW_USER}\n", self.tokens)
            self.check_nothing_failed()
            self.load.token = NEW_USER
            self.check_nothing_failed()
            self.load.more(16)  # those that began with the old one are over
            edge.write(f"new generate {NEW_USER}\n", self.tokens)
            self.check_nothing_failed()
            with self.assertRaises(grpc.RpcError) as refused:
                list(stub.Generate(request(1), metadata=bearer(edge.USER),
                                   timeout=programs.PATIENCE_S))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
            # What runs goes on: a token is shown when a call begins.
            self.assertEqual(tokens + sum(len(one.token_ids) for one in stream), 400)
            edge.write("nonsense\n", self.tokens)
            self.check_nothing_failed()
        self.assertIn("new tokens are not used, those before still are", self.server.log())

    def test_headers_are_bounded(self):
        """Before anyone knows who sends them."""
        with self.load.channel() as channel:
            stub = generation_pb2_grpc.GenerationStub(channel)
            with self.assertRaises(grpc.RpcError) as refused:
                stub.GetModelInfo(api.GetModelInfoRequest(), timeout=programs.PATIENCE_S,
                                  metadata=bearer("x" * (20 << 10)))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.check_nothing_failed()


class HttpRotationTest(unittest.TestCase):

    def test_certificates_and_tokens(self):
        ca = authority.Authority()
        cert, key = ca.issue(*edge.SERVER_NAMES, path=os.path.join(ca.folder, "server"))
        tokens = edge.tokens()
        binaries = os.path.join(os.environ["TEST_TMPDIR"], "bin")
        os.makedirs(binaries)
        for path in ("coordinator/tandem_coordinator", programs.GATEWAY):
            shutil.copy(path, binaries)
        server = programs.start_coordinator("--http-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key,
                                            "--tokens", tokens, program=f"{binaries}/tandem_coordinator")
        self.addCleanup(server.kill)
        programs.until(lambda: ": serving" in server.log(), "there is no gateway")
        load = HttpLoad(server.log().split("HTTP on ")[1].split()[0], ca.ca, edge.USER)
        self.addCleanup(load.stop)
        load.more()
        response, connection = load.stream(400)
        self.addCleanup(connection.close)
        begun = response.read(6)

        before = serial(load.address, ca.ca)
        new_cert, new_key = ca.issue(*edge.SERVER_NAMES)
        os.rename(new_cert, cert)
        load.more()
        os.rename(new_key, key)
        self.assertNotEqual(serial(load.address, ca.ca), before)
        edge.write(f"user generate {edge.USER}\nnew generate {NEW_USER}\n", tokens)
        load.token = NEW_USER
        load.more(16)  # those that began with the old one are over
        edge.write(f"new generate {NEW_USER}\n", tokens)
        load.more()
        self.assertEqual(load.failures, [], server.log())
        load.token = edge.USER
        with self.assertRaises(AssertionError):
            load.generate()
        events = begun + response.read()
        self.assertTrue(events.endswith(b"data: [DONE]\n\n"), events[-200:])
        self.assertEqual(server.log().count("new certificates are in use"), 1)


if __name__ == "__main__":
    unittest.main()
