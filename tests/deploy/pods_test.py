"""The servers' pods, as their rendered manifests describe them, started, probed, used and ended on this machine."""

import os
import sys
import unittest

sys.path[:0] = ["tests/deploy", "tests/client"]
import pod as pods  # noqa: E402
from pod_case import CHAT, COMPLETION, PodCase, on_the_cpu, with_model_of_stub  # noqa: E402


class PodsTest(PodCase):
    def test_cpu_demo(self):
        def patient(spec):
            # Its streams may take longer than a demo's users would wait.
            args = spec["containers"][0]["args"]
            self.assertIn("--drain-timeout=30s", args)
            args[args.index("--drain-timeout=30s")] = "--drain-timeout=300s"
            return spec

        with self.pod("cpu-demo", patient) as pod:
            # The demo model has no chat template.
            self.check_life(pod, COMPLETION)

    def test_single_node_on_the_cpu(self):
        with self.pod("single-node", on_the_cpu) as pod:
            self.check_life(pod, CHAT)

    def test_replicas_on_the_cpu(self):
        with self.pod("replicas", on_the_cpu) as pod:
            self.check_life(pod, CHAT)

    def test_the_init_container_pulls_the_model(self):
        with self.pod("model-by-name", with_model_of_stub) as pod:
            [pull] = pod.spec["initContainers"]
            self.pull(pod, pull, "models/demo.gguf")
            # A pod that is restarted in place: what follows has no hub.
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
            self.check_life(pod, CHAT)

    def test_the_job_fills_an_empty_claim(self):
        claim = self.new_claim("empty")
        with self.pod("fill-models", with_model_of_stub, claim=claim) as pod:
            [pull] = pod.spec["containers"]
            pull["env"].append({"name": "HF_ENDPOINT", "value": "http://127.0.0.1:9"})
            pull["args"].append("--attempts=1")
            self.assertNotEqual(pod.run_to_end("pull"), 0)
            self.pull(pod, pull, "models/demo.gguf")
            # Once more, as after a restart of the node: it finds the files, without a hub.
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
        with self.pod("single-node", on_the_cpu, claim=claim) as pod:
            self.check_life(pod, CHAT)
        self.assertEqual(os.listdir(claim), ["hub"])  # a server can't write there

    def test_a_missing_model_ends_the_pod(self):
        def other_model(spec):
            spec["containers"][0]["args"][0] = "--model=/usr/share/tandem/none.gguf"
            return spec

        with self.pod("cpu-demo", other_model) as pod:
            pod.start("tandem")
            self.assertEqual(pod.containers["tandem"].wait(timeout=pods.DEADLINE), 1)
            self.assertIn("none.gguf", pod.log("tandem"))


if __name__ == "__main__":
    unittest.main()
