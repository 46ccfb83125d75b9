"""Two servers behind a router that nobody here wrote: smg of PyPI, which speaks HTTP to clients and VllmEngine to
servers, and has the tokenizer to itself. Skipped where the package is not installed."""

import http.client
import importlib.util
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import unittest

VENV = os.environ.get("TANDEM_VENV", "/none")
PACKAGES = os.path.join(VENV, "lib", f"python3.{sys.version_info[1]}", "site-packages")
sys.path[:0] = ["tests/gateway", "tools"]
import programs  # noqa: E402
import split_gguf  # noqa: E402

MODEL = "Tandem demo"
NUM_REQUESTS = 12
STRING, ARRAY = split_gguf.STRING, split_gguf.ARRAY


def tokenizer_lists(path):
    """The string lists of a GGUF file's tokenizer, by the ends of their keys."""
    with open(path, "rb") as file:
        reader = split_gguf.Reader(file.read())
    reader.at = struct.calcsize("<IIQ")
    lists = {}
    for _ in range(reader.number("Q")):
        key, kind, begin = reader.string().decode(), reader.number("I"), reader.at
        reader.skip_value(kind)
        end, reader.at = reader.at, begin
        if kind == ARRAY and reader.number("I") == STRING:
            lists[key.rpartition(".")[2]] = [reader.string().decode() for _ in range(reader.number("Q"))]
        reader.at = end
    return lists


def write_tokenizer(folder):
    """The demo model's tokenizer as Hugging Face's tokenizers reads it."""
    lists = tokenizer_lists("models/demo.gguf")
    special = [{"id": i, "content": lists["tokens"][i], "special": True, "single_word": False,
                "lstrip": False, "rstrip": False, "normalized": False} for i in (0, 1)]
    bytes_as_letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    files = {
        "tokenizer.json": {
            "version": "1.0", "added_tokens": special, "pre_tokenizer": bytes_as_letters, "decoder": bytes_as_letters,
            "normalizer": None, "post_processor": None,
            "model": {"type": "BPE", "merges": lists["merges"],
                      "vocab": {token: i for i, token in enumerate(lists["tokens"])}}},
        "tokenizer_config.json": {
            "bos_token": lists["tokens"][0], "eos_token": lists["tokens"][1],
            "chat_template": programs.TEMPLATE},
    }
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Router:

    def __init__(self, servers):
        port, metrics_port = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self.log_path = os.path.join(os.environ["TEST_TMPDIR"], "router-log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(VENV, "bin", "smg"), "launch", "--host", "127.0.0.1", "--port", str(port),
                 "--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics_port),
                 "--policy", "round_robin", "--backend", "vllm", "--disable-tokenizer-autoload",
                 "--worker-urls", *(f"grpc://{server.address}" for server in servers)],
                stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": "", "no_proxy": "127.0.0.1"})

    def use_tokenizer(self, folder):
        programs.until(lambda: self.answers("/health"), "the router is not there")
        status, _, content = programs.call(
            self.address, "/v1/tokenizers", {"name": MODEL, "source": folder},
            headers={"content-type": "application/json"})
        assert status < 300, content
        programs.until(lambda: self.complete("Story:", 1)[0] == 200, "the router does not serve")

    def answers(self, path):
        try:
            return programs.call(self.address, path)[0] == 200
        except OSError:
            return False

    def post(self, path, body):
        status, _, content = programs.call(self.address, path, {"model": MODEL, "temperature": 0, **body},
                                           headers={"content-type": "application/json"})
        return status, content

    def complete(self, prompt, max_tokens, **fields):
        return self.post("/v1/completions", {"prompt": prompt, "max_tokens": max_tokens, **fields})

    def stop(self):
        self.process.kill()
        self.process.wait()


@unittest.skipUnless(importlib.util.find_spec("smg") or os.path.isdir(os.path.join(PACKAGES, "smg")),
                     "needs smg of PyPI")
class RouterTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.servers = [programs.start_coordinator("--max-num-seqs", "2", "--metrics-listen", "127.0.0.1:0") for _ in range(2)]
        for server in cls.servers:
            cls.addClassCleanup(server.kill)
        cls.router = Router(cls.servers)
        cls.addClassCleanup(cls.router.stop)
        folder = os.path.join(os.environ["TEST_TMPDIR"], "tokenizer")
        os.makedirs(folder)
        write_tokenizer(folder)
        cls.router.use_tokenizer(folder)

    def stats(self, name):
        """Of both servers."""
        return [programs.stats(server.address)[f"tandem_{name}"] for server in self.servers]

    def num_cancelled(self):
        """Of both servers."""
        total = 0
        for server in self.servers:
            metrics = re.search(r"status page on http://(\S+)", server.log()).group(1)
            text = programs.call(metrics, "/metrics")[2].decode()
            total += int(re.search(r'tandem_request_success_total\{finished_reason="abort"\} (\d+)', text).group(1))
        return total

    def unfinished(self):
        return sum(self.stats("num_requests_running")) + sum(self.stats("num_requests_waiting"))

    def test_text_is_that_of_a_server_asked_directly(self):
        prompt = "Story: The cat"
        status, answer = self.router.complete(f"<|begin|>{prompt}", 24)
        self.assertEqual(status, 200, answer)
        done = subprocess.run(
            ["client/tandem", "generate", "--server", self.servers[0].address, "--prompt", prompt,
             "--max-tokens", "24", "--temperature", "0", "--json"],
            capture_output=True, timeout=programs.PATIENCE_S, check=True)
        self.assertEqual(answer["choices"][0]["text"], json.loads(done.stdout)["text"])

    def test_both_servers_serve_and_answers_are_equal(self):
        answers = []

        def ask():
            answers.append(self.router.complete("Story: The dog", 20))

        before = self.stats("requests_total")
        threads = [threading.Thread(target=ask) for _ in range(NUM_REQUESTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([status for status, _ in answers], [200] * NUM_REQUESTS)
        self.assertEqual(len({answer["choices"][0]["text"] for _, answer in answers}), 1)
        self.assertEqual([after - old for after, old in zip(self.stats("requests_total"), before)],
                         [NUM_REQUESTS / 2] * 2)

    def test_chat_with_continuations_and_log_probabilities(self):
        status, answer = self.router.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Story:"}], "max_tokens": 6, "n": 2,
            "logprobs": True, "top_logprobs": 2})
        self.assertEqual(status, 200, answer)
        self.assertEqual(sorted(choice["index"] for choice in answer["choices"]), [0, 1])
        self.assertEqual(len(answer["choices"][0]["logprobs"]["content"]), 6)

    def test_stop_strings(self):
        _, whole = self.router.complete("Story: The cat", 30)
        text = whole["choices"][0]["text"]
        stop = text.split()[3]
        status, answer = self.router.complete("Story: The cat", 30, stop=[stop])
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["choices"][0]["text"], text[:text.index(stop)])

    def test_too_long_a_request_is_the_clients_error(self):
        status, answer = self.router.complete("Story:", 1_000_000)
        self.assertEqual(status, 400, answer)
        self.assertIn("exceed the context", answer["error"]["message"])

    def leave_early(self):
        """Clients leave once their requests have arrived. Whether some were not answered in full by then."""
        cancelled, arrived = self.num_cancelled(), sum(self.stats("requests_total"))
        body = {"model": MODEL, "prompt": "Story:", "max_tokens": 900, "ignore_eos": True, "stream": True}
        clients = []
        for _ in range(NUM_REQUESTS):
            client = http.client.HTTPConnection(self.router.address, timeout=programs.PATIENCE_S)
            client.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
            clients.append(client)
        programs.until(lambda: sum(self.stats("requests_total")) >= arrived + NUM_REQUESTS, "the requests have not arrived")
        for client in clients:
            client.close()
        programs.until(lambda: self.unfinished() == 0, "requests still run")
        return self.num_cancelled() > cancelled

    def test_clients_that_leave_end_their_requests(self):
        programs.until(self.leave_early, "no request was cancelled")


if __name__ == "__main__":
    unittest.main()
