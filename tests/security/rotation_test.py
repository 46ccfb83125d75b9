"""Certificates and tokens that change under load: nothing that may go on is dropped."""

import os
import shutil
import socket
import ssl
import sys
import unittest

sys.path.insert(0, "tests/security")
import authority  # noqa: E402
import edge  # noqa: E402
from edge import programs  # noqa: E402
from loads import HttpLoad, Load, bearer, request  # noqa: E402
from standing_server import STANDING_FLAGS, StandingServer  # noqa: E402

import grpc  # noqa: E402
from tandem.v1 import generation_pb2 as api, generation_pb2_grpc  # noqa: E402

NEW_USER = "another-token-of-the-user"
LONG = 900  # tokens, of the model's 1,024


def serial(address, ca):
    """The number of the certificate that a new connection is shown."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection((host, int(port)), timeout=programs.PATIENCE_S) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            return connection.getpeercert()["serialNumber"]


class RotationTest(unittest.TestCase):

    def setUp(self):
        self.authority = authority.Authority()
        self.folder = self.authority.folder
        self.cert, self.key = self.authority.issue(
            *edge.SERVER_NAMES, path=os.path.join(self.folder, "server"))
        self.tokens = edge.tokens()
        self.server = programs.start_coordinator("--tls-cert", self.cert, "--tls-key", self.key,
                                                 "--tokens", self.tokens, *STANDING_FLAGS)
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
        # Both for a while, so that clients can change theirs.
        edge.write(f"user generate {edge.USER}\nnew generate {NEW_USER}\n", self.tokens)
        self.check_nothing_failed()
        self.load.token = NEW_USER
        self.check_nothing_failed()
        edge.write(f"new generate {NEW_USER}\n", self.tokens)
        self.check_nothing_failed()
        edge.write("nonsense\n", self.tokens)
        self.check_nothing_failed()
        self.assertIn("new tokens are not used, those before still are", self.server.log())

    def test_what_runs_goes_on(self):
        """A certificate and a token are shown when a call begins."""
        self.load.stop()
        self.assertEqual(self.load.failures, [], self.server.log())
        before = serial(self.server.address, self.authority.ca)
        new = self.authority.issue(*edge.SERVER_NAMES)
        with self.load.channel() as channel:
            stub = generation_pb2_grpc.GenerationStub(channel)

            def begin():
                stream = stub.Generate(request(LONG), metadata=bearer(edge.USER), timeout=programs.PATIENCE_S)
                return next(stream), stream

            with StandingServer(self.server) as standing:
                first, stream = standing.catch(begin)
                os.rename(new[0], self.cert)
                os.rename(new[1], self.key)
                self.assertNotEqual(serial(self.server.address, self.authority.ca), before)
                edge.write(f"new generate {NEW_USER}\n", self.tokens)
                with self.assertRaises(grpc.RpcError) as refused:
                    stub.GetModelInfo(api.GetModelInfoRequest(), metadata=bearer(edge.USER), timeout=programs.PATIENCE_S)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                self.assertEqual(standing.in_flight(), 1)
            self.assertEqual(sum(len(one.token_ids) for one in (first, *stream)), LONG)

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
                                            "--tokens", tokens, *STANDING_FLAGS, program=f"{binaries}/tandem_coordinator")
        self.addCleanup(server.kill)
        programs.until(lambda: ": serving" in server.log(), "there is no gateway")
        load = HttpLoad(server.log().split("HTTP on ")[1].split()[0], ca.ca, edge.USER)
        self.addCleanup(load.stop)
        load.more()

        self.check_new_certificate(load, ca, cert, key)
        load.more()
        edge.write(f"user generate {edge.USER}\nnew generate {NEW_USER}\n", tokens)
        load.token = NEW_USER
        load.more()
        edge.write(f"new generate {NEW_USER}\n", tokens)
        load.more()
        load.stop()
        self.assertEqual(load.failures, [], server.log())

        def begin():
            connection = load.send(LONG)
            self.addCleanup(connection.close)
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            return response.read(6), response

        with StandingServer(server) as standing:
            first, response = standing.catch(begin)
            self.check_new_certificate(load, ca, cert, key)
            edge.write(f"user generate {edge.USER}\n", tokens)
            refused = load.send(8)  # with the token that the stream began with
            self.addCleanup(refused.close)
            self.assertEqual(refused.getresponse().status, 401)
            self.assertEqual(standing.in_flight(), 1)
        events = first + response.read()
        self.assertTrue(events.endswith(b"data: [DONE]\n\n"), events[-200:])
        self.assertEqual(server.log().count("new certificates are in use"), 2)

    def check_new_certificate(self, load, ca, cert, key):
        before = serial(load.address, ca.ca)
        new_cert, new_key = ca.issue(*edge.SERVER_NAMES)
        os.rename(new_cert, cert)
        self.assertEqual(serial(load.address, ca.ca), before)
        os.rename(new_key, key)
        self.assertNotEqual(serial(load.address, ca.ca), before)


if __name__ == "__main__":
    unittest.main()
