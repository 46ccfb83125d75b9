"""The servers' pods, as their rendered manifests describe them, started, probed, used and ended on this machine."""

import os
import re
import sys
import unittest

sys.path[:0] = ["tests/deploy", "tests/client"]
import chat_model  # noqa: E402
import hub_stub  # noqa: E402
import pod as pods  # noqa: E402
from pod_case import CHAT, COMPLETION, PodCase, on_the_cpu  # noqa: E402


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
        def other_model(spec):
            for container in spec["initContainers"] + spec["containers"]:
                container["args"] = [re.sub("hf:[^:]+", f"hf:{hub_stub.REPO}", word) for word in container["args"]]
            return spec

        model = os.path.join(self.work, "chat.gguf")
        chat_model.add_template("models/demo.gguf", model)
        with self.pod("model-by-name", other_model) as pod:
            hub = pod.popen_in_network([sys.executable, "-B", "tests/client/hub_stub.py", model])
            [pull] = pod.spec["initContainers"]
            pull["env"].append({"name": "HF_ENDPOINT", "value": hub.stdout.readline().strip()})
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
            self.assertRegex(pod.log("pull"), r"(?m)^/models/hub/.*/tiny-Q8_0\.gguf$")
            hub.communicate()  # its input's end ends it: what follows has no hub
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
            self.check_life(pod, CHAT)

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
