"""Who may call the HTTP port that a coordinator opens: the same rules, in OpenAI's form."""

import http.client
import json
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

STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 5}


class HttpCase(unittest.TestCase):
    """A coordinator with --http-listen, and these flags."""

    def start(self, *flags):
        folder = os.path.join(os.environ["TEST_TMPDIR"], "bin")
        if not os.path.exists(folder):
            os.makedirs(folder)
            for path in ("coordinator/tandem_coordinator", programs.GATEWAY):
                shutil.copy(path, folder)
        self.server = programs.Program(
            f"{folder}/tandem_coordinator", "--model", "models/demo.gguf", "--listen",
            "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--worker-binary",
            "worker/tandem_worker", "--threads-per-worker", "1", *flags)
        self.addCleanup(self.server.kill)
        programs.until(lambda: "HTTP on 127.0.0.1" in self.server.log(), "there is no gateway")
        self.address = self.server.log().split("HTTP on ")[1].split()[0]

    def wait_healthy(self, context=None):
        programs.until(lambda: self.call("/health", context=context)[0] == 200,
                       "the gateway is not healthy")

    def call(self, path, body=None, token=None, context=None):
        """(status, headers, JSON or bytes)."""
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        more = {"context": context} if context else {}
        connection = kind(self.address, timeout=programs.PATIENCE_S, **more)
        try:
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None,
                               {"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            content = response.read()
            if response.headers.get_content_type() == "application/json":
                content = json.loads(content)
            return response.status, response.headers, content
        finally:
            connection.close()


class TokensTest(HttpCase):

    def test_the_callers_token_counts(self):
        self.start("--tokens", edge.tokens())
        self.wait_healthy()
        for path, body in (("/v1/completions", STORY), ("/v1/models", None),
                           ("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [1]}),
                           ("/v1/chat/completions",
                            {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})):
            for token in (None, "a-token-that-no-one-has", "not ascii: é".encode().decode("latin1")):
                status, headers, content = self.call(path, body, token)
                self.assertEqual(status, 401, (path, content))
                self.assertEqual(headers["www-authenticate"], "Bearer")
                self.assertEqual(content["error"]["code"], "invalid_api_key")
            status, _, content = self.call(path, body, edge.OPS)
            self.assertEqual((status, content["error"]["code"]), (403, "insufficient_permissions"))
            self.assertEqual(self.call(path, body, edge.USER)[0], 200, path)
        self.assertEqual(self.call("/version")[0], 200)
        status, _, content = self.call("/v1/completions", {**STORY, "stream": True}, edge.USER)
        self.assertTrue(status == 200 and content.endswith(b"[DONE]\n\n"), content)
        # Log-probabilities take calls of the gateway's own, by its own token.
        status, _, content = self.call("/v1/completions", {**STORY, "logprobs": 2}, edge.USER)
        self.assertEqual(status, 200, content)
        self.assertNotIn("Story:", self.server.log())
        self.assertEqual(self.server.stop(), 0, self.server.log())

    def test_limits_say_when_to_come_again(self):
        self.start("--tokens", edge.tokens("rate=0.02 burst=2"))
        self.wait_healthy()
        for _ in range(2):
            self.assertEqual(self.call("/v1/completions", STORY, edge.USER)[0], 200)
        status, headers, content = self.call("/v1/completions", STORY, edge.USER)
        self.assertEqual((status, content["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertIn("token 'user' may send 0.02 requests per second", content["error"]["message"])
        self.assertTrue(1 < int(headers["retry-after"]) <= 50, headers["retry-after"])


class TlsTest(HttpCase):

    def setUp(self):
        self.authority = authority.Authority()
        self.cert, self.key = self.authority.issue(
            *edge.SERVER_NAMES, path=os.path.join(self.authority.folder, "server"))
        self.trusting = ssl.create_default_context(cafile=self.authority.ca)

    def test_tls_and_tokens(self):
        self.start("--tls-cert", self.cert, "--tls-key", self.key, "--tokens", edge.tokens())
        self.wait_healthy(self.trusting)
        ask = lambda token: self.call("/v1/completions", STORY, token, self.trusting)[0]  # noqa: E731
        self.assertEqual(ask(edge.USER), 200)
        self.assertEqual(ask(edge.OPS), 403)
        self.assertEqual(ask(None), 401)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.call("/health", context=ssl.create_default_context(
                cafile=authority.Authority("a stranger").ca))
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            self.call("/health")
        old = ssl.get_server_certificate(tuple(self.address.split(":")))
        cert, key = self.authority.issue(*edge.SERVER_NAMES)
        os.rename(cert, self.cert)
        self.assertEqual(ssl.get_server_certificate(tuple(self.address.split(":"))), old)
        os.rename(key, self.key)
        self.assertNotEqual(ssl.get_server_certificate(tuple(self.address.split(":"))), old)
        self.assertEqual(ask(edge.USER), 200)
        self.assertIn("new certificates are in use", self.server.log())
        # Of who does not trust the server, and of who speaks plain text.
        for reason in ("unknown ca", "http request"):
            self.assertRegex(self.server.log(), f"a connection is refused: TLS handshake: .*{reason}")

    def test_client_certificates(self):
        self.start("--tls-cert", self.cert, "--tls-key", self.key, "--tls-client-ca",
                   self.authority.ca)
        shown = ssl.create_default_context(cafile=self.authority.ca)
        shown.load_cert_chain(*self.authority.issue("DNS:a"))
        self.wait_healthy(shown)
        self.assertEqual(self.call("/v1/completions", STORY, context=shown)[0], 200)
        for pair in ((), authority.Authority("a stranger").issue("DNS:a"),
                     self.authority.issue("DNS:a", dates=authority.EXPIRED)):
            context = ssl.create_default_context(cafile=self.authority.ca)
            if pair:
                context.load_cert_chain(*pair)
            with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                self.call("/health", context=context)
        for reason in ("peer did not return a certificate", "certificate verify failed"):
            self.assertIn(f"a connection is refused: TLS handshake: {reason}", self.server.log())

    def test_no_session_outlives_its_authority(self):
        """A resumed session shows no certificate again. TLS 1.2 cannot do without them."""
        trusted = os.path.join(self.authority.folder, "clients")
        shutil.copy(self.authority.ca, trusted)
        self.start("--tls-cert", self.cert, "--tls-key", self.key, "--tls-client-ca", trusted)
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.load_cert_chain(*self.authority.issue("DNS:a"))
        self.wait_healthy(context)
        session = self.session_after_a_call(context)
        old = ssl.create_default_context(cafile=self.authority.ca)
        old.load_cert_chain(*self.authority.issue("DNS:a"))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.session_after_a_call(old)
        os.replace(authority.Authority("another").ca, trusted)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            self.session_after_a_call(context, session)

    def session_after_a_call(self, context, session=None):
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), timeout=programs.PATIENCE_S) as plain, \
                context.wrap_socket(plain, server_hostname=host, session=session) as secured:
            secured.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            response = http.client.HTTPResponse(secured)
            response.begin()
            self.assertEqual(response.status, 200)
            return secured.session

    def test_the_gateways_own_port_is_no_way_in(self):
        """It is plain text on the loopback address, and has no tokens of users to check here."""
        self.start("--tls-cert", self.cert, "--tls-key", self.key, "--tls-client-ca",
                   self.authority.ca)
        ports = self.listening_ports() - {int(self.server.address.split(":")[1])}
        self.assertEqual(len(ports), 2, "of workers and of the gateway")
        refused = 0
        for port in ports:
            code, err = edge.generate(f"127.0.0.1:{port}", "--timeout", "5s")
            self.assertEqual(code, 1)
            refused += "this port is of the server's gateway" in err
        self.assertEqual(refused, 1)

    def listening_ports(self):
        """Of the coordinator's own process."""
        inodes = set()
        folder = f"/proc/{self.server.process.pid}/fd"
        for fd in os.listdir(folder):
            try:
                inodes.add(os.readlink(f"{folder}/{fd}"))
            except FileNotFoundError:
                pass
        with open("/proc/net/tcp", encoding="ascii") as file:
            fields = [line.split() for line in list(file)[1:]]
        return {int(field[1].split(":")[1], 16) for field in fields
                if field[3] == "0A" and f"socket:[{field[9]}]" in inodes}


class StandaloneTest(HttpCase):

    def test_in_front_of_a_server_with_tls_and_tokens(self):
        ca = authority.Authority()
        cert, key = ca.issue(*edge.SERVER_NAMES)
        tokens = edge.write(f"gateway generate the-token-of-a-gateway\nuser generate {edge.USER}\n")
        self.server = programs.start_coordinator("--tls-cert", cert, "--tls-key", key, "--tokens",
                                                 tokens)
        self.addCleanup(self.server.kill)
        gateway = programs.start_gateway("--server", self.server.address, "--server-tls-ca", ca.ca,
                                         "--token-file", edge.write("the-token-of-a-gateway\n"))
        self.addCleanup(gateway.kill)
        self.address = gateway.address
        self.wait_healthy()
        self.assertEqual(self.call("/v1/completions", STORY, edge.USER)[0], 200)
        self.assertEqual(self.call("/v1/completions", STORY)[0], 401)

    def test_an_open_port_for_other_machines_is_refused(self):
        done = programs.subprocess.run(
            [programs.GATEWAY, "--listen", "0.0.0.0:0", "--check"], capture_output=True, text=True,
            timeout=programs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^tandem_gateway: --listen 0.0.0.0:0: other machines reach")


if __name__ == "__main__":
    unittest.main()
