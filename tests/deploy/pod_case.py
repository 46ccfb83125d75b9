"""What tests of pods share: the image, a pod of a rendered overlay, and the life of a server in it."""

import copy
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import chat_model
import hub_stub
import manifests
import pod as pods
import pod_clients

MODEL = "tests/golden/arch/llama/model.gguf"
CHAT = ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Story:"}]})
COMPLETION = ("/v1/completions", {"prompt": "Story:"})


def make_image(folder):
    """What the CPU image adds to /usr; Python and its packages are the machine's."""
    files = {"bin/tandem": "client/tandem", "bin/tandem_coordinator": "coordinator/tandem_coordinator",
             "bin/tandem_gateway": "gateway/tandem_gateway", "bin/tandem_worker": "worker/tandem_worker",
             "share/tandem/demo.gguf": "models/demo.gguf"}
    for name, source in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        os.chmod(target, 0o755 if name.startswith("bin/") else 0o644)
    return folder


def on_the_cpu(spec):
    """The same pod for a machine without GPUs and a model of this tree: other values of four flags, nothing else."""
    spec = with_model_of_stub(spec)
    values = {"device": "cpu", "tensor-parallel-size": "2", "max-num-seqs": "8"}
    [container] = spec["containers"]
    for index, argument in enumerate(container["args"]):
        flag, equals, _ = argument.partition("=")
        if equals and flag[2:] in values:
            container["args"][index] = f"{flag}={values[flag[2:]]}"
    return spec


def with_model_of_stub(spec):
    """The same pod with the repository of the hub's stub."""
    spec = copy.deepcopy(spec)
    for container in spec.get("initContainers", []) + spec["containers"]:
        container["args"] = [re.sub("hf:[^:]+", f"hf:{hub_stub.REPO}", word) for word in container.get("args", [])]
    return spec


class PodCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = pods.missing_rights()
        if reason:
            raise unittest.SkipTest(f"pods can't be imitated here: {reason}")
        cls.work = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        cls.tree = manifests.copy_of_tree(cls.work)
        cls.image = make_image(os.path.join(cls.work, "image"))
        cls.claim = cls.new_claim("claim")
        with cls.pod("fill-models", with_model_of_stub) as pod:
            cls.pull(pod, pod.spec["containers"][0], MODEL)

    @classmethod
    def new_claim(cls, name):
        """A folder as the kubelet leaves an empty volume: the pod's group may write."""
        folder = os.path.join(cls.work, name)
        os.makedirs(folder)
        os.chown(folder, 0, 64100)
        os.chmod(folder, 0o2775)
        return folder

    @classmethod
    def pod(cls, overlay, change=lambda spec: spec, secrets=None, claim=None, name=None):
        """The overlay's only pod, or the one of that name."""
        specs = manifests.pod_specs(manifests.render(os.path.join(cls.tree, "overlays", overlay)))
        [spec] = [spec for found, spec in specs if name in (None, found)]
        return pods.Pod(change(spec), cls.image, {"tandem-models": claim or cls.claim},
                        tempfile.mkdtemp(dir=cls.work), secrets)

    @classmethod
    def pull(cls, pod, container, source):
        """Runs a container that pulls, with a hub that has `source` with a chat template. The hub is gone afterwards."""
        model = os.path.join(tempfile.mkdtemp(dir=cls.work), "model.gguf")
        chat_model.add_template(source, model)
        hub = pod.popen_in_network([sys.executable, "-B", "tests/client/hub_stub.py", model])
        container["env"].append({"name": "HF_ENDPOINT", "value": hub.stdout.readline().strip()})
        code = pod.run_to_end(container["name"])
        hub.communicate()  # its input's end ends it
        if code != 0 or not re.search(r"(?m)^/models/hub/.*/tiny-Q8_0\.gguf$", pod.log(container["name"])):
            raise AssertionError(f"it ended with {code}: {pod.log(container['name'])}")

    def wait_ready(self, pod):
        """Starts the server; its probes succeed in order."""
        container = pod.start("tandem")
        started = []

        def all_ready():
            # As the kubelet: the others are not asked before the first has succeeded.
            for name in manifests.PROBES[len(started):]:
                if not pod.probe(container[name]):
                    return False
                started.append(name)
            return True

        pod.until("all probes succeed", all_ready)
        self.assertEqual(started, list(manifests.PROBES))

    def check_answers(self, pod, clients, http_request):
        """Both APIs answer; the server has no rights and its folders can't be written."""
        answer = clients.tandem("generate", "--prompt", "Story:", "--max-tokens", "8", "--ignore-eos", "--json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(json.loads(answer.stdout)["usage"]["completion_tokens"], 8)
        pod.until("HTTP serves", clients.http_serves)
        path, body = http_request
        status, answer = clients.ask(path, {**body, "max_tokens": 8, "ignore_eos": True})
        self.assertEqual((status, answer.get("usage", {}).get("completion_tokens")), (200, 8), answer)
        inside = pod.run(["sh", "-c", "id -u; grep CapEff /proc/self/status; touch /usr/x /models/x 2>&1"])
        self.assertRegex(inside.stdout, r"^64100\nCapEff:\t0+\n(.*\n)*.*/usr/x.*Read-only file system")

    def check_drain(self, pod, clients, http_request):
        """Streams of both APIs finish after SIGTERM; nothing is left."""
        pod.pre_stop("tandem")
        # One client sends all at once, more than single-node and replicas run at a time: some wait when SIGTERM comes.
        length, count = 900, 12
        before = clients.received()
        streams = clients.start_tandem("generate", "--prompts-file", "-", "--max-tokens", str(length), "--ignore-eos", "--json")
        streams.stdin.write("".join(f'{{"prompt": "Story {i}:"}}\n' for i in range(count)))
        streams.stdin.close()
        path, body = http_request
        http_stream = clients.send(path, {**body, "max_tokens": length, "ignore_eos": True, "stream": True,
                                          "stream_options": {"include_usage": True}})
        pod.until("the streams are in the server", lambda: clients.received() == before + count + 1)
        pod.terminate("tandem")
        *_, last, usage, done = pod_clients.events(http_stream)
        self.assertEqual((last["choices"][0]["finish_reason"], usage["usage"]["completion_tokens"], done), ("length", length, "[DONE]"))
        ends = [json.loads(line) for line in streams.stdout]
        self.assertEqual(streams.wait(timeout=pods.DEADLINE), 0, ends)
        streams.stdout.close()
        self.assertEqual([(end["finish_reason"], end["usage"]["completion_tokens"]) for end in ends], [("length", length)] * count)
        self.assertEqual(pod.containers["tandem"].wait(timeout=pods.DEADLINE), 0, pod.log("tandem"))
        left = pod.run(["sh", "-c", "set -- /proc/[0-9]*; echo $#; ls -A /dev/shm /tmp"])
        # `sleep infinity` and this shell, which lists the processes itself.
        self.assertEqual(left.stdout.split()[0], "2", left.stdout)
        self.assertEqual(left.stdout.split()[1:], ["/dev/shm:", "/tmp:"], left.stdout)

    def check_life(self, pod, http_request):
        clients = pod_clients.Clients(pod)
        self.wait_ready(pod)
        self.check_answers(pod, clients, http_request)
        self.check_drain(pod, clients, http_request)
