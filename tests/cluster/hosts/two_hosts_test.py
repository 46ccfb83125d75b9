"""CPU ranks on two hosts: namespaces with networks and process ids of their own, and a cable between them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = ["tests/cluster/loss", "tests/security"]
import authority  # noqa: E402
import network as networks  # noqa: E402

NEAR, FAR = "10.77.0.1", "10.77.0.2"
SERVER, WORKERS = "127.0.0.1:50051", f"{NEAR}:50052"
COUNT, LENGTH = 6, 600
MODEL = ["--model", "models/demo.gguf", "--tensor-parallel-size", "2", "--threads-per-worker", "1", "--speculation", "off"]


class Hosts:
    """A coordinator and rank 0 on one host, rank 1 on the other. Use as a context manager."""

    def __init__(self, *flags, rank_flags=()):
        self._flags = flags
        self._rank_flags = rank_flags
        self._folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self._token = self._write("token", "a token\n")
        self._authority = authority.Authority()
        self.near, self.far = networks.Network(), networks.Network()
        self._programs = []

    def _write(self, name, text):
        path = os.path.join(self._folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def __enter__(self):
        self.near.__enter__()
        self.far.__enter__()
        try:
            self.near.connect(self.far, NEAR, FAR)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure):
        self.near.__exit__(*failure)
        self.far.__exit__(*failure)
        for program in self._programs:
            program.wait()

    def _start(self, host, name, command):
        log = os.path.join(self._folder, f"{len(self._programs)}-{name}.log")
        self._programs.append(networks.Program(host, log, command))
        return self._programs[-1]

    def _tls(self, name):
        cert, key = self._authority.issue("DNS:" + name)
        return ["--worker-tls-cert", cert, "--worker-tls-key", key, "--worker-tls-ca", self._authority.ca]

    def start(self):
        self.coordinator = self._start(self.near, "coordinator", [
            "coordinator/tandem_coordinator", *MODEL, "--listen", SERVER, "--step-transport", "grpc", "--workers", "external",
            "--worker-listen", WORKERS, "--worker-token-file", self._token, *self._tls("tandem-coordinator"), *self._flags])
        self.coordinator.until("waiting for workers")
        self.ranks = [self.start_rank(0), self.start_rank(1)]

    def start_rank(self, rank):
        return self._start((self.near, self.far)[rank], f"rank-{rank}", [
            "worker/tandem_worker", "--coordinator", WORKERS, "--token-file", self._token, "--rank", str(rank),
            *self._tls("tandem-worker"), *self._rank_flags])

    def cut_ranks(self):
        """Drops all packets between the hosts but those of the worker port."""
        rules = ["tcp dport 50052 accept", "tcp sport 50052 accept", f"ip saddr {FAR} drop"]
        self.near.run(["nft", "; ".join(f"add rule inet cut in {rule}" for rule in rules)])

    def heal(self):
        self.near.run(["nft", "flush", "chain", "inet", "cut", "in"])

    def wait_ready(self):
        self.near.run(["client/tandem", "wait", "--server", SERVER, "--timeout", f"{networks.DEADLINE_S}s"])

    def streams(self):
        return self.near.popen(generate(self._write("prompts", prompts())), stdout=subprocess.PIPE)

    def stats(self):
        return json.loads(self.near.run(["client/tandem", "stats", "--server", SERVER, "--json"]))

    def stop(self):
        """SIGTERM to the coordinator; the exit codes of all."""
        self.coordinator.terminate()
        return [self.coordinator.wait(), *(rank.wait() for rank in self.ranks)]


def prompts():
    """At mixed temperatures."""
    return "".join(json.dumps({"prompt": f"Story {i}:", "temperature": i % 3 * 0.5, "seed": i, "logprobs": i % 3}) + "\n" for i in range(COUNT))


def generate(path, *flags):
    return ["client/tandem", "generate", *(flags or ("--server", SERVER)), "--prompts-file", path, "--json",
            "--max-tokens", str(LENGTH), "--ignore-eos"]


def answers(streams):
    return streams.communicate(timeout=networks.DEADLINE_S)[0].splitlines()


class TwoHostsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = networks.missing_rights()
        if reason:
            raise unittest.SkipTest(f"there can be no second host here: {reason}")
        cls.one_host = cls.answers_of_one_host()

    @classmethod
    def answers_of_one_host(cls):
        """Of two ranks with shared memory between them."""
        with networks.Network() as host, tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"]) as folder:
            path = os.path.join(folder, "prompts")
            with open(path, "w", encoding="utf-8") as file:
                file.write(prompts())
            server = networks.Program(host, os.path.join(folder, "log"), [
                "coordinator/tandem_coordinator", *MODEL, "--listen", SERVER, "--worker-binary", "worker/tandem_worker"])
            host.run(["client/tandem", "wait", "--server", SERVER, "--timeout", f"{networks.DEADLINE_S}s"])
            found = answers(host.popen(generate(path), stdout=subprocess.PIPE))
            server.terminate()
            server.wait()
        ends = [json.loads(line) for line in found]
        assert [end["usage"]["completion_tokens"] for end in ends] == [LENGTH] * COUNT, ends
        return found

    def check_end(self, hosts, restarts):
        stats = hosts.stats()
        self.assertEqual(stats["tandem_restarts_total"], restarts)
        self.assertEqual(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"])
        self.assertEqual(hosts.stop(), [0, 0, 0], hosts.coordinator.log())

    def test_answers_are_those_of_one_host_to_the_bit(self):
        with Hosts() as hosts:
            hosts.wait_ready()
            self.assertEqual(answers(hosts.streams()), self.one_host)
            self.check_end(hosts, 0)

    def test_a_rank_that_is_killed_is_replaced_and_no_stream_sees_it(self):
        with Hosts() as hosts:
            hosts.wait_ready()
            streams = hosts.streams()
            while hosts.stats()["tandem_steps_total"] == 0:
                self.assertIsNone(streams.poll())
            hosts.ranks[1].send(signal.SIGKILL)
            hosts.coordinator.until("rank 1 disconnected")
            hosts.ranks[1] = hosts.start_rank(1)
            self.assertEqual(answers(streams), self.one_host)
            self.check_end(hosts, 1)

    def test_ranks_that_cannot_share_memory_are_refused_if_they_should(self):
        for flag in ("--collective-transport", "--step-transport"):
            with Hosts(flag, "shm") as hosts:
                hosts.coordinator.until("workers must share one host with --step-transport shm")  # which comes first is chance

    def test_all_may_listen_on_the_same_port_of_any_address(self):
        with Hosts(rank_flags=("--collective-listen", "0.0.0.0:50053")) as hosts:
            hosts.wait_ready()
            self.check_end(hosts, 0)

    def test_a_loss_between_ranks_alone_is_noticed_and_repaired(self):
        with Hosts() as hosts:  # the step timeout is 60 s
            hosts.wait_ready()
            streams = hosts.streams()
            while hosts.stats()["tandem_steps_total"] == 0:
                self.assertIsNone(streams.poll())
            hosts.cut_ranks()
            noticed = hosts.coordinator.until("^W .*rank [01].*has left.*; restart 1 of 5")[0]
            self.assertNotIn("in time", noticed)
            hosts.heal()
            self.assertEqual(answers(streams), self.one_host)
            self.check_end(hosts, 1)


if __name__ == "__main__":
    unittest.main()
