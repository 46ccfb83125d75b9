"""The two pods of overlays/multi-node-cpu, with a network between them: they serve, lose a rank, and drain."""

import json
import signal
import sys
import unittest

sys.path[:0] = ["tests/client", "tests/deploy", "tests/security"]
import pod as pods  # noqa: E402
from authority import Authority  # noqa: E402
from pod_case import CHAT, PodCase, with_model_of_stub  # noqa: E402
from pod_clients import Clients  # noqa: E402

LEADER, OTHER = "10.88.0.1", "10.88.0.2"
LENGTH, COUNT = 600, 6


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def on_small_nodes(spec):
    """The same pod for the cores and the model of this machine, and with the variable that the group's controller sets."""
    spec = with_model_of_stub(spec)
    for container in spec["containers"]:
        container["args"] = ["--threads-per-worker=1" if word == "--threads-per-worker=16" else word for word in container["args"]]
        container["command"] = [word.replace("$(LWS_LEADER_ADDRESS)", LEADER) for word in container["command"]]
    return spec


class GroupTest(PodCase):
    def setUp(self):
        authority = Authority()
        self.secrets = {"tandem-worker-token": {"token": "the-token-of-the-workers"}}
        for name in ("coordinator", "worker"):
            certificate, key = authority.issue(f"DNS:tandem-{name}")
            self.secrets[f"tandem-{name}-tls"] = {"tls.crt": read(certificate), "tls.key": read(key), "ca.crt": read(authority.ca)}

    def group_pod(self, name):
        secrets = {secret: files for secret, files in self.secrets.items() if name == "leader" or "coordinator" not in secret}
        return self.pod("multi-node-cpu", on_small_nodes, secrets, name=name)

    def start_streams(self, clients):
        streams = clients.start_tandem("generate", "--prompts-file", "-", "--max-tokens", str(LENGTH), "--ignore-eos", "--json")
        streams.stdin.write("".join(f'{{"prompt": "Story {i}:"}}\n' for i in range(COUNT)))
        streams.stdin.close()
        return streams

    def check_streams(self, streams):
        ends = [json.loads(line) for line in streams.stdout]
        self.assertEqual(streams.wait(timeout=pods.DEADLINE), 0, ends)
        streams.stdout.close()
        self.assertEqual([end["usage"]["completion_tokens"] for end in ends], [LENGTH] * COUNT)

    def test_it_serves_outlives_a_rank_and_drains(self):
        with self.group_pod("leader") as leader, self.group_pod("worker") as other:
            leader.cable_to(other, LEADER, OTHER)
            for pod in (other, leader):
                pod.start("workers")
            self.wait_ready(leader)
            self.assertIn("the ranks run on 2 hosts", leader.log("tandem"))
            clients = Clients(leader)
            self.check_answers(leader, clients, CHAT)

            # The kubelet starts a container again that has ended.
            before = clients.received()
            streams = self.start_streams(clients)
            leader.until("the streams are in the server", lambda: clients.received() == before + COUNT)
            other.send("workers", signal.SIGKILL)
            self.assertEqual(other.containers["workers"].wait(timeout=pods.DEADLINE), -signal.SIGKILL)
            other.start("workers")
            self.check_streams(streams)
            self.assertIn("serving again, after a pause of", leader.log("tandem"))

            before = clients.received()
            streams = self.start_streams(clients)
            leader.until("the streams are in the server", lambda: clients.received() == before + COUNT)
            for pod in (leader, other):
                pod.terminate("workers")  # as the kubelet does to all containers of a pod; these wait for the coordinator
            leader.terminate("tandem")
            self.check_streams(streams)
            for pod, name in ((leader, "tandem"), (leader, "workers"), (other, "workers")):
                self.assertEqual(pod.containers[name].wait(timeout=pods.DEADLINE), 0, pod.log(name))


if __name__ == "__main__":
    unittest.main()
