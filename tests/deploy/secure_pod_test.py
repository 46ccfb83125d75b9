"""The pod of overlays/secure: who is refused, who is answered, and secrets that change while it serves."""

import http.client
import os
import ssl
import sys
import unittest

import yaml

sys.path[:0] = ["tests/client", "tests/deploy", "tests/security"]
import manifests  # noqa: E402
from authority import Authority  # noqa: E402
from pod_case import CHAT, PodCase, on_the_cpu  # noqa: E402
from pod_clients import Clients  # noqa: E402

USER, NEW_USER, OPS = "the-token-of-a-user", "the-next-token-of-the-user", "the-token-of-the-ops"


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def certificate_of(authority):
    """What the secret tandem-server-tls holds."""
    names = yaml.safe_load(read("deploy/k8s/overlays/secure/certificate.yaml"))["spec"]["dnsNames"]
    certificate, key = authority.issue(*(f"DNS:{name}" for name in names))
    return {"tls.crt": read(certificate), "tls.key": read(key), "ca.crt": read(authority.ca)}


def tokens(*users):
    """What the secret tandem-tokens holds."""
    return {"tokens": "".join(f"user{i} generate {token}\n" for i, token in enumerate(users)) + f"ops admin {OPS}\n"}


class SecurePodTest(PodCase):
    def setUp(self):
        self.authority = Authority()

    def secure_pod(self):
        return self.pod("secure", on_the_cpu, {"tandem-server-tls": certificate_of(self.authority), "tandem-tokens": tokens(USER)})

    def clients(self, pod, token, authority=None, name="tandem"):
        path = None
        if token:
            path = os.path.join(self.work, token)
            with open(path, "w", encoding="ascii") as file:
                file.write(token)
            os.chmod(path, 0o600)
        return Clients(pod, (authority or self.authority).ca, path, name)

    def check_grpc_refuses(self, clients, reason):
        done = clients.tandem("generate", "--prompt", "Story:", "--max-tokens", "1", "--timeout", "5s")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, reason)

    def check_served(self, clients):
        done = clients.tandem("generate", "--prompt", "Story:", "--max-tokens", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        path, body = CHAT
        status, answer = clients.ask(path, {**body, "max_tokens": 1})
        self.assertEqual(status, 200, answer)

    def check_token_refused(self, clients, status, reason):
        self.check_grpc_refuses(clients, reason)
        path, body = CHAT
        self.assertEqual(clients.ask(path, {**body, "max_tokens": 1})[0], status)

    def test_it_lives_with_certificates_and_tokens(self):
        with self.secure_pod() as pod:
            self.wait_ready(pod)
            clients = self.clients(pod, USER)
            self.check_answers(pod, clients, CHAT)
            self.check_served(self.clients(pod, USER, name="tandem-http.tandem"))
            self.check_drain(pod, clients, CHAT)

    def test_strangers_are_refused(self):
        with self.secure_pod() as pod:
            self.wait_ready(pod)
            pod.until("HTTP serves", self.clients(pod, None).http_serves)  # health needs no token
            plain = Clients(pod)
            self.check_grpc_refuses(plain, "failed to connect")
            with self.assertRaises((ConnectionError, http.client.HTTPException)):
                plain.ask("/health")
            self.check_token_refused(self.clients(pod, None), 401, "a token is needed")
            self.check_token_refused(self.clients(pod, "the-token-of-no-one"), 401, "the token is not known")
            self.check_token_refused(self.clients(pod, OPS), 403, "token 'ops'")
            self.check_served(self.clients(pod, USER))

    def test_new_secrets_are_taken_without_a_restart(self):
        with self.secure_pod() as pod:
            self.wait_ready(pod)
            before = self.clients(pod, USER)
            pod.until("HTTP serves", before.http_serves)

            other = Authority("another authority")
            pod.secrets["tandem-server-tls"].replace(certificate_of(other))
            after = self.clients(pod, USER, other)
            self.check_served(after)
            self.check_grpc_refuses(before, "certificate verify failed")
            with self.assertRaises(ssl.SSLCertVerificationError):
                before.ask("/health")
            [container] = pod.spec["containers"]
            self.assertEqual([name for name in manifests.PROBES if pod.probe(container[name])], list(manifests.PROBES))

            # Both for a while, so that clients can change theirs.
            new = self.clients(pod, NEW_USER, other)
            pod.secrets["tandem-tokens"].replace(tokens(USER, NEW_USER))
            self.check_served(after)
            self.check_served(new)
            pod.secrets["tandem-tokens"].replace(tokens(NEW_USER))
            self.check_token_refused(after, 401, "the token is not known")
            self.check_served(new)

            self.assertIsNone(pod.containers["tandem"].poll())
            self.assertEqual(pod.log("tandem").count("HTTP on "), 1, pod.log("tandem"))
            self.assertEqual(pod.log("tandem").count("ready: listening"), 1, pod.log("tandem"))

    def test_a_wrong_secret_ends_the_pod(self):
        files = certificate_of(self.authority)
        files["tls.key"] = certificate_of(self.authority)["tls.key"]
        with self.pod("secure", on_the_cpu, {"tandem-server-tls": files, "tandem-tokens": tokens(USER)}) as pod:
            pod.start("tandem")
            self.assertNotEqual(pod.containers["tandem"].wait(timeout=60), 0)
            self.assertIn("--tls-key: '/etc/tandem-tls/tls.key': holds the key of another certificate", pod.log("tandem"))


if __name__ == "__main__":
    unittest.main()
