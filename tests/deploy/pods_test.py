"""The servers' pods, as their rendered manifests describe them, started, probed, used and ended on this machine."""

import copy
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path[:0] = ["tests/deploy", "tests/client"]
import hub_stub  # noqa: E402
import manifests  # noqa: E402
import pod as pods  # noqa: E402

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
MODEL = "tests/golden/arch/llama/model.gguf"


def make_image(folder):
    """What the CPU image adds to /usr."""
    files = {"bin/tandem": "client/tandem", "bin/tandem_coordinator": "coordinator/tandem_coordinator",
             "bin/tandem_worker": "worker/tandem_worker", "share/tandem/demo.gguf": "models/demo.gguf"}
    for name, source in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        os.chmod(target, 0o755 if name.startswith("bin/") else 0o644)
    return folder


def on_the_cpu(spec):
    """The same pod for a machine without GPUs: other values of three flags, nothing else."""
    spec = copy.deepcopy(spec)
    values = {"device": "cpu", "tensor-parallel-size": "2", "max-num-seqs": "8"}
    [container] = spec["containers"]
    for index, argument in enumerate(container["args"]):
        flag, equals, _ = argument.partition("=")
        if equals and flag[2:] in values:
            container["args"][index] = f"{flag}={values[flag[2:]]}"
    return spec


class PodsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = pods.missing_rights()
        if reason:
            raise unittest.SkipTest(f"pods can't be imitated here: {reason}")
        cls.work = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        cls.tree = manifests.copy_of_tree(cls.work)
        cls.image = make_image(os.path.join(cls.work, "image"))
        cls.models = os.path.join(cls.work, "models")
        os.makedirs(cls.models)
        shutil.copyfile(MODEL, os.path.join(cls.models, "model.gguf"))

    def pod(self, overlay, change=lambda spec: spec):
        [(_, spec)] = manifests.pod_specs(manifests.render(os.path.join(self.tree, "overlays", overlay)))
        return pods.Pod(change(spec), self.image, {"tandem-models": self.models},
                        tempfile.mkdtemp(dir=self.work))

    def check_life(self, pod):
        """Probes turn ready in order; traffic; a stream and the server's end; nothing is left."""
        container = pod.start("tandem")
        started = []

        def all_ready():
            # As the kubelet: the others are not asked before the first has succeeded.
            for name in PROBES[len(started):]:
                if not pod.probe(container[name]):
                    return False
                started.append(name)
            return True

        pod.until("all probes succeed", all_ready)
        self.assertEqual(started, list(PROBES))
        answer = pod.run(["tandem", "generate", "--prompt", "Story:", "--max-tokens", "8", "--ignore-eos", "--json"])
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(json.loads(answer.stdout)["usage"]["completion_tokens"], 8)
        inside = pod.run(["sh", "-c", "id -u; grep CapEff /proc/self/status; touch /usr/x /models/x 2>&1"])
        self.assertRegex(inside.stdout, r"^64100\nCapEff:\t0+\n(.*\n)*.*/usr/x.*Read-only file system")

        pod.pre_stop("tandem")
        # One client sends all at once, more than single-node and replicas run at a time: some wait when SIGTERM comes.
        length, count = 900, 12
        streams = pod.popen(["tandem", "generate", "--prompts-file", "-", "--max-tokens", str(length), "--ignore-eos", "--json"])
        streams.stdin.write("".join(f'{{"prompt": "Story {i}:"}}\n' for i in range(count)))
        streams.stdin.close()
        pod.until("the streams are in the server", lambda: self.received(pod) == 1 + count)
        pod.terminate("tandem")
        ends = [json.loads(line) for line in streams.stdout]
        self.assertEqual(streams.wait(timeout=pods.DEADLINE), 0, ends)
        streams.stdout.close()
        self.assertEqual([(end["finish_reason"], end["usage"]["completion_tokens"]) for end in ends], [("length", length)] * count)
        self.assertEqual(pod.containers["tandem"].wait(timeout=pods.DEADLINE), 0, pod.log("tandem"))
        left = pod.run(["sh", "-c", "set -- /proc/[0-9]*; echo $#; ls -A /dev/shm /tmp"])
        # `sleep infinity` and this shell, which lists the processes itself.
        self.assertEqual(left.stdout.split()[0], "2", left.stdout)
        self.assertEqual(left.stdout.split()[1:], ["/dev/shm:", "/tmp:"], left.stdout)

    def received(self, pod):
        done = pod.run(["tandem", "stats", "--json"])
        self.assertEqual(done.returncode, 0, f"{done.stderr}{pod.log('tandem')}")
        return json.loads(done.stdout)["tandem_requests_total"]

    def test_cpu_demo(self):
        def patient(spec):
            # Its streams may take longer than a demo's users would wait.
            args = spec["containers"][0]["args"]
            self.assertIn("--drain-timeout=30s", args)
            args[args.index("--drain-timeout=30s")] = "--drain-timeout=300s"
            return spec

        with self.pod("cpu-demo", patient) as pod:
            self.check_life(pod)

    def test_single_node_on_the_cpu(self):
        with self.pod("single-node", on_the_cpu) as pod:
            self.check_life(pod)

    def test_replicas_on_the_cpu(self):
        with self.pod("replicas", on_the_cpu) as pod:
            self.check_life(pod)

    def test_the_init_container_pulls_the_model(self):
        def other_model(spec):
            for container in spec["initContainers"] + spec["containers"]:
                container["args"] = [re.sub("hf:[^:]+", f"hf:{hub_stub.REPO}", word) for word in container["args"]]
            return spec

        with self.pod("model-by-name", other_model) as pod:
            hub = pod.popen_in_network([sys.executable, "-B", "tests/client/hub_stub.py", "models/demo.gguf"])
            [pull] = pod.spec["initContainers"]
            pull["env"].append({"name": "HF_ENDPOINT", "value": hub.stdout.readline().strip()})
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
            self.assertRegex(pod.log("pull"), r"(?m)^/models/hub/.*/tiny-Q8_0\.gguf$")
            hub.communicate()  # its input's end ends it: what follows has no hub
            self.assertEqual(pod.run_to_end("pull"), 0, pod.log("pull"))
            self.check_life(pod)

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
