"""Who may call the gRPC port: certificates, tokens, scopes, and plain text where it must be TLS."""

import os
import socket
import ssl
import subprocess
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, "tests/security")
import authority  # noqa: E402
import edge  # noqa: E402
from edge import programs  # noqa: E402


def raw(address, data):
    """What a server answers to these bytes, until it closes."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=programs.PATIENCE_S) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while part := connection.recv(4096):
                answer += part
        except ConnectionResetError:
            pass
        return answer


class PortCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.authority = authority.Authority()
        cls.stranger = authority.Authority("a stranger")
        cls.user = edge.write(edge.USER)
        cls.ops = edge.write(edge.OPS)

    def check_refused(self, outcome, reason):
        code, err = outcome
        self.assertEqual(code, 1, err)
        self.assertRegex(err, reason)

    def check_accepted(self, outcome):
        code, err = outcome
        self.assertEqual(code, 0, err + self.server.log())


class TlsAndTokensTest(PortCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cert, key = cls.authority.issue(*edge.SERVER_NAMES)
        cls.server = programs.start_coordinator("--tls-cert", cert, "--tls-key", key, "--tokens",
                                                edge.tokens(), "--log-level", "debug")

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def generate(self, *flags):
        return edge.generate(self.server.address, *flags)

    def tearDown(self):
        """Whatever was refused, those who may still can."""
        self.check_accepted(self.generate("--tls-ca", self.authority.ca, "--token-file", self.user))

    def test_a_wrong_authority(self):
        self.check_refused(
            self.generate("--tls-ca", self.stranger.ca, "--token-file", self.user, "--timeout",
                          "5s"), "(?i)certificate|handshake|connect")

    def test_a_wrong_name(self):
        self.check_refused(
            self.generate("--tls-ca", self.authority.ca, "--tls-server-name", "other.example",
                          "--token-file", self.user, "--timeout", "5s"), "(?i)name|connect|handshake")

    def test_plain_text_to_tls(self):
        self.check_refused(self.generate("--token-file", self.user, "--timeout", "5s"),
                           self.server.address)
        raw(self.server.address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        raw(self.server.address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        programs.until(lambda: "a connection is refused" in self.server.log(), "nothing is logged")

    def test_no_token(self):
        self.check_refused(self.generate("--tls-ca", self.authority.ca), "a token is needed")
        self.assertIn("refused: /tandem.v1.Generation/Generate: a token is needed",
                      self.server.log())

    def test_an_unknown_token(self):
        unknown = edge.write("a-token-that-no-one-has")
        self.check_refused(
            self.generate("--tls-ca", self.authority.ca, "--token-file", unknown),
            "the token is not known")
        self.assertNotIn("a-token-that-no-one-has", self.server.log())

    def test_a_wrong_scope(self):
        flags = ("--tls-ca", self.authority.ca, "--token-file")
        self.check_refused(self.generate(*flags, self.ops),
                           "token 'ops' does not have the scope generate")
        self.check_refused(edge.client("stats", self.server.address, *flags, self.user),
                           "token 'user' does not have the scope admin")
        self.check_accepted(edge.client("stats", self.server.address, *flags, self.ops))
        trace = ("--seconds", "0.01", "--output", "-")
        self.check_refused(edge.client("trace", self.server.address, *trace, *flags, self.user),
                           "token 'user' does not have the scope admin")
        self.check_accepted(edge.client("trace", self.server.address, *trace, *flags, self.ops))

    def test_health_needs_no_token(self):
        self.check_accepted(
            edge.client("wait", self.server.address, "--tls-ca", self.authority.ca))

    def test_headers_are_bounded(self):
        """Before anyone knows who sends them."""
        large = edge.write("x" * 4096)
        self.check_refused(
            self.generate("--tls-ca", self.authority.ca, "--token-file", large),
            "the token is not known")

    def test_no_prompt_is_logged(self):
        code, err = edge.client("generate", self.server.address, "--prompt", "a secret of mine",
                                "--max-tokens", "2", "--tls-ca", self.authority.ca, "--token-file",
                                self.user)
        self.assertEqual(code, 0, err)
        self.assertNotIn("a secret of mine", self.server.log())
        self.assertNotIn(edge.USER, self.server.log())


class ClientCertificateTest(PortCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cert, key = cls.authority.issue(*edge.SERVER_NAMES)
        cls.server = programs.start_coordinator("--tls-cert", cert, "--tls-key", key,
                                                "--tls-client-ca", cls.authority.ca)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def show(self, *pair):
        flags = () if not pair else ("--tls-client-cert", pair[0], "--tls-client-key", pair[1])
        return edge.generate(self.server.address, "--tls-ca", self.authority.ca, "--timeout", "5s",
                             *flags)

    def test_only_a_certificate_of_the_authority_is_one(self):
        self.check_accepted(self.show(*self.authority.issue("DNS:a")))
        self.check_refused(self.show(), self.server.address)
        self.check_refused(self.show(*self.stranger.issue("DNS:a")), self.server.address)
        self.check_accepted(self.show(*self.authority.issue("DNS:b")))

    def test_an_expired_one_is_none(self):
        # Shown by hand: tandem itself refuses to.
        cert, key = self.authority.issue("DNS:a", dates=authority.EXPIRED)
        self.assertTrue(self.greeting(*self.authority.issue("DNS:a")))
        self.assertFalse(self.greeting(cert, key))
        code, err = edge.generate(self.server.address, "--tls-ca", self.authority.ca,
                                  "--tls-client-cert", cert, "--tls-client-key", key)
        self.assertEqual(code, 1)
        self.assertIn("holds a certificate that ended", err)

    def greeting(self, cert, key):
        """What the server says first, in HTTP/2, to a client with this certificate."""
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.load_cert_chain(cert, key)
        context.set_alpn_protocols(["h2"])
        host, port = self.server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=programs.PATIENCE_S) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as connection:
                    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
                    return connection.recv(64)
            except (ssl.SSLError, ConnectionError):
                return b""


class PlainTextTest(PortCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = programs.start_coordinator("--tokens", edge.tokens())

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def test_tokens_are_checked_in_plain_text_too(self):
        self.check_refused(edge.generate(self.server.address), "a token is needed")
        self.check_accepted(edge.generate(self.server.address, "--token-file", self.user))

    def test_tls_to_plain_text(self):
        self.check_refused(
            edge.generate(self.server.address, "--tls-ca", self.authority.ca, "--timeout", "5s"),
            self.server.address)
        self.check_accepted(edge.generate(self.server.address, "--token-file", self.user))


class ServerThatIsNotTrustedTest(PortCase):
    """What a client does with a server whose certificate has ended."""

    def test_an_expired_server(self):
        self.assertEqual(self.handshake(*self.authority.issue(*edge.SERVER_NAMES)), "done")
        self.assertNotEqual(
            self.handshake(*self.authority.issue(*edge.SERVER_NAMES, dates=authority.EXPIRED)),
            "done")

    def handshake(self, cert, key):
        """How a client's first one with such a server ends."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.set_alpn_protocols(["h2"])
        outcome = []
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def accept():
                plain, _ = listener.accept()
                try:
                    context.wrap_socket(plain, server_side=True).close()
                    outcome.append("done")
                except OSError as error:
                    outcome.append(str(error))
                listener.close()

            thread = threading.Thread(target=accept)
            thread.start()
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            self.check_refused(
                edge.generate(address, "--tls-ca", self.authority.ca, "--timeout", "5s"), address)
            thread.join(programs.PATIENCE_S)
        return outcome[0]


class StartTest(PortCase):
    """What is refused before anything is started: one line, exit code 1 or 2."""

    def check_start(self, flags, code, reason):
        found, err = edge.refused_start(*flags)
        self.assertEqual(found, code, err)
        self.assertRegex(err.splitlines()[-1], reason)

    def test_an_open_port_for_other_machines(self):
        cert, key = self.authority.issue(*edge.SERVER_NAMES)
        tls = ("--tls-cert", cert, "--tls-key", key)
        needs = "other machines reach this address, so it needs --tls-cert"
        for flags in (("--listen", "0.0.0.0:0"), ("--listen", "0.0.0.0:0", *tls),
                      ("--listen", "0.0.0.0:0", "--tokens", edge.tokens()),
                      ("--listen", "127.0.0.1:0", "--http-listen", "[::]:0")):
            self.check_start(flags, 2, needs)

    def test_it_starts_with_what_it_needs(self):
        cert, key = self.authority.issue(*edge.SERVER_NAMES)
        for flags in (("--insecure",),
                      ("--tls-cert", cert, "--tls-key", key, "--tokens", edge.tokens())):
            # The model does not exist: it is asked for when the ports are open.
            code, err = edge.refused_start("--listen", "0.0.0.0:0", "--model", "none.gguf", *flags)
            self.assertEqual(code, 1, err)
            self.assertIn("answers when it is ready", err)
            self.assertIn("none.gguf", err.splitlines()[-1])

    def test_files_that_do_not_go_together(self):
        cert, key = self.authority.issue(*edge.SERVER_NAMES)
        _, other = self.authority.issue(*edge.SERVER_NAMES)
        expired, its_key = self.authority.issue(*edge.SERVER_NAMES, dates=authority.EXPIRED)
        nothing = edge.write("nothing")
        listen = ("--listen", "127.0.0.1:0")
        self.check_start((*listen, "--tls-cert", cert), 2, "are given together")
        self.check_start((*listen, "--tls-client-ca", cert), 2, "--tls-client-ca needs --tls-cert")
        for flags, reason in (
                (("--tls-cert", cert, "--tls-key", other), "--tls-key: .* the key of another"),
                (("--tls-cert", expired, "--tls-key", its_key), "holds a certificate that ended"),
                (("--tls-cert", nothing, "--tls-key", key), "holds no certificate in PEM form"),
                (("--tls-cert", cert, "--tls-key", nothing), "holds no private key"),
                (("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", nothing),
                 "--tls-client-ca: .* holds no certificate"),
                (("--tls-cert", cert + "x", "--tls-key", key), "No such file or directory"),
                (("--tokens", nothing), "line 1: a line has a name, scopes and a token")):
            self.check_start((*listen, *flags), 1, reason)

    def test_a_token_for_another_machine_in_plain_text(self):
        """TANDEM_INSECURE is of the server: a client on its machine does not follow it."""
        for variables in ({}, {"TANDEM_INSECURE": "true"}):
            with unittest.mock.patch.dict(os.environ, variables):
                code, err = edge.generate("192.0.2.1:1", "--token-file", self.user)
            self.assertEqual(code, 2)
            self.assertIn("a token goes to another machine", err)


if __name__ == "__main__":
    unittest.main()
