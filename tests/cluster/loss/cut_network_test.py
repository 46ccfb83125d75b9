"""The connection of a worker is cut by dropped packets, which neither end is told: both notice it, and no stream loses anything."""

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests/cluster/loss")
import network as networks  # noqa: E402

# Until either end has noticed. The 30 s are for a machine under load.
NOTICED_S = 10 + 30

SERVER, WORKERS = "127.0.0.1:50051", "127.0.0.1:50052"
COUNT, LENGTH = 8, 900


class Deployment:
    """A coordinator and external workers of two ranks in a network of their own. Use as a context manager."""

    def __init__(self, *flags):
        self._folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self._token = os.path.join(self._folder, "token")
        with open(self._token, "w", encoding="utf-8") as token:
            token.write("a token\n")
        self._flags = flags
        self.network = networks.Network()
        self._programs = []

    def __enter__(self):
        self.network.__enter__()
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_all(self):
        self.coordinator = self._start("coordinator", [
            "coordinator/tandem_coordinator", "--model", "models/demo.gguf", "--listen", SERVER,
            "--workers", "external", "--worker-listen", WORKERS, "--worker-token-file", self._token,
            "--step-transport", "grpc", "--tensor-parallel-size", "2", "--threads-per-worker", "1",
            "--speculation", "off", *self._flags])  # the usage counts drafts, which depend on what else runs
        self.coordinator.until("waiting for workers")  # a worker dials again only after a second
        self.workers = [self.start_worker(rank) for rank in range(2)]
        self.network.run(["client/tandem", "wait", "--server", SERVER, "--timeout", f"{networks.DEADLINE_S}s"])

    def __exit__(self, *failure):
        self.network.__exit__(*failure)
        for program in self._programs:
            program.wait()

    def _start(self, name, command):
        self._programs.append(networks.Program(self.network, os.path.join(self._folder, f"{len(self._programs)}-{name}.log"), command))
        return self._programs[-1]

    def start_worker(self, rank):
        return self._start(f"rank-{rank}", [
            "worker/tandem_worker", "--coordinator", WORKERS, "--token-file", self._token, "--rank", str(rank)])

    def streams(self):
        """Starts streams at mixed temperatures; their answers are the output's lines, in order."""
        prompts = os.path.join(self._folder, "prompts")
        with open(prompts, "w", encoding="utf-8") as lines:
            for i in range(COUNT):
                lines.write(json.dumps({"prompt": f"Story {i}:", "temperature": i % 4 * 0.4, "seed": i, "logprobs": i % 3}) + "\n")
        return self.network.popen(["client/tandem", "generate", "--server", SERVER, "--prompts-file", prompts, "--json",
                                   "--max-tokens", str(LENGTH), "--ignore-eos"], stdout=subprocess.PIPE)

    def answers(self):
        return self.streams().communicate(timeout=networks.DEADLINE_S)[0].splitlines()

    def stats(self):
        return json.loads(self.network.run(["client/tandem", "stats", "--server", SERVER, "--json"]))

    def connection(self, rank):
        """The ports of a rank's connection."""
        pid = self.coordinator.until(rf"rank {rank} connected: pid (\d+)")[1]
        port = int(WORKERS.rpartition(":")[2])
        return self.network.local_port(pid, port), port

    def stop(self):
        """SIGTERM to the coordinator; the exit codes of all."""
        self.coordinator.terminate()
        return [self.coordinator.wait(), *(worker.wait() for worker in self.workers)]


def seconds(line):
    """When a line of a log was written, as seconds since 1970."""
    stamp = re.match(r"[DIWE] (\S+ \S+)Z", line)[1]
    return datetime.datetime.fromisoformat(stamp + "+00:00").timestamp()


class CutNetworkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = networks.missing_rights()
        if reason:
            raise unittest.SkipTest(f"no connection can be cut here: {reason}")
        with Deployment() as deployment:
            cls.undisturbed = deployment.answers()
        ends = [json.loads(line) for line in cls.undisturbed]
        assert [end["usage"]["completion_tokens"] for end in ends] == [LENGTH] * COUNT, ends

    def check_cut(self, deployment, rank, connection, cause):
        """Cuts a rank's connection: the rank goes to a new worker, as Kubernetes would start it, and the cut one ends with a reason."""
        cut = deployment.workers[rank]
        deployment.network.cut(*connection)
        at = time.time()
        noticed = deployment.coordinator.until(rf"^W .*{cause}.*; restart 1 of 5 within .*")[0]
        deployment.coordinator.until(f"rank {rank} disconnected")
        deployment.workers[rank] = deployment.start_worker(rank)
        resumed = deployment.coordinator.until("^I .*serving again, after a pause of .*")[0]
        self.assertEqual(cut.wait(), 1, cut.log())
        reason, ended = cut.last_line()
        print(f"After the cut: {seconds(noticed) - at:.1f} s: {noticed}\n"
              f"{seconds(resumed) - at:.1f} s: {resumed}\n{ended - at:.1f} s: {reason}", flush=True)
        self.assertRegex(reason, "control connection ended: .*(timed out|timeout)")
        self.assertLess(seconds(noticed) - at, NOTICED_S)
        self.assertLess(ended - at, NOTICED_S)
        dropped = deployment.network.num_dropped()
        self.assertTrue(len(dropped) == 2 and all(dropped), dropped)

    def check_end(self, deployment):
        """Nothing is left of the loss but its count."""
        stats = deployment.stats()
        self.assertEqual((stats["tandem_restarts_total"], stats["tandem_epoch"]), (1, 2))
        self.assertEqual(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"])
        self.assertEqual(deployment.stop(), [0, 0, 0], deployment.coordinator.log())

    def check_streams(self, deployment, rank, cause):
        """Streams that run when a rank's connection is cut."""
        connection = deployment.connection(rank)
        streams = deployment.streams()
        while deployment.stats()["tandem_steps_total"] == 0:
            self.assertIsNone(streams.poll())
        self.check_cut(deployment, rank, connection, cause)
        self.assertEqual(streams.communicate(timeout=networks.DEADLINE_S)[0].splitlines(), self.undisturbed)
        self.check_end(deployment)

    def test_in_a_step(self):
        with Deployment("--step-timeout", "2") as deployment:
            self.check_streams(deployment, 1, r"rank 1 did not answer step \d+ in time")

    def test_in_a_step_that_may_take_longer(self):
        with Deployment() as deployment:  # the step timeout is 60 s
            self.check_streams(deployment, 0, r"rank 0(: control connection lost| did not answer step \d+ in time)")

    def test_while_idle(self):
        with Deployment() as deployment:
            self.assertEqual(deployment.answers(), self.undisturbed)
            self.check_cut(deployment, 0, deployment.connection(0), "rank 0 shows no sign of life for 8s")
            self.assertEqual(deployment.answers(), self.undisturbed)
            self.check_end(deployment)


if __name__ == "__main__":
    unittest.main()
