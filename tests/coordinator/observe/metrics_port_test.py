"""The metrics port of a real server: /metrics, /status.json and the status page; and JSON logs."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import grpc

sys.path[:0] = ["tests/hostile", "gateway/tandem_gateway"]
import processes  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402
from tandem.v1 import generation_pb2_grpc  # noqa: E402

NAME = re.compile(r"tandem_[a-z0-9_]+")
PORT = re.compile(r"metrics and a status page on http://(127\.0\.0\.1:\d+)")
# `./dev test` leaves it there.
PROMTOOL = os.path.join(os.path.dirname(os.environ.get("TANDEM_VENV", "/none/venv")), "promtool")
# Of servers with --http-listen, which tests/gateway/spawned_test.py starts.
OF_A_GATEWAY = {"tandem_http_gateway_up": ("gauge", "1 if the HTTP gateway of --http-listen gives signs of life")}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def fetch(address, path, method="GET"):
    """(status, headers, body)"""
    connection = http.client.HTTPConnection(address, timeout=processes.PATIENCE_S)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, body


def families(text):
    """{name: (type, help)}"""
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    return {name: (kind, helps[name]) for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)}


def exported_series(text):
    """Every name that a query may use."""
    return {re.match(NAME, line).group() for line in text.splitlines() if line and line[0] != "#"}


class MetricsPortTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = processes.Server("--metrics-listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug")
        cls.addClassCleanup(cls.server.process.kill)
        assert cls.server.wait_ready(), cls.server.log()
        cls.address = PORT.search(cls.server.log()).group(1)
        cls.stub = generation_pb2_grpc.GenerationStub(grpc.insecure_channel(cls.server.address, options=(("grpc.enable_http_proxy", 0),)))

    def generate(self, max_tokens, **metadata):
        request = api.GenerateRequest(token_ids=api.TokenIds(ids=[1, 2, 3]), request_id=f"of {max_tokens} tokens")
        request.sampling.max_tokens = max_tokens
        request.sampling.ignore_eos = True
        for _ in self.stub.Generate(request, timeout=processes.PATIENCE_S, metadata=list(metadata.items())):
            pass

    def metrics(self):
        return fetch(self.address, "/metrics")[2]

    def value(self, series):
        found = re.search("^" + re.escape(series) + r" (\S+)$", self.metrics(), re.MULTILINE)
        return float(found.group(1)) if found else None

    def test_a_request_is_counted(self):
        names = ["tandem_prompt_tokens_total", "tandem_generation_tokens_total", 'tandem_request_success_total{finished_reason="length"}',
                 "tandem_time_to_first_token_seconds_count", "tandem_inter_token_latency_seconds_count",
                 "tandem_e2e_request_latency_seconds_count", "tandem_request_queue_time_seconds_count",
                 "tandem_request_prefill_time_seconds_count", "tandem_request_decode_time_seconds_count",
                 "tandem_requests_total", "tandem_prefix_cache_queries_total"]
        before = [self.value(name) for name in names]
        self.generate(20)
        # The last message leaves just before its stream is counted as ended.
        processes.until(lambda: self.value(names[5]) == before[5] + 1, "the request has not ended")
        rises = [self.value(name) - was for name, was in zip(names, before)]
        self.assertEqual(rises, [3, 20, 1, 1, 19, 1, 1, 1, 1, 1, 3])
        self.assertEqual(self.value('tandem_server_state{state="ready"}'), 1)
        self.assertEqual(self.value("tandem_ranks_ready"), 2)
        for rank in "01":
            self.assertGreater(self.value(f'tandem_worker_step_seconds_total{{rank="{rank}",part="wait"}}'), 0)
            self.assertGreater(self.value(f'tandem_worker_collective_seconds_total{{rank="{rank}"}}'), 0)
        self.assertGreater(self.value('tandem_step_seconds_total{part="wait"}'), 0)

    def test_the_documents_have_exactly_these_metrics(self):
        self.generate(2)  # collectives are there once they are measured
        with open("docs/operations.md", encoding="utf-8") as page:
            rows = re.findall(r"^\| `(tandem_\w+)` \| (\w+) \| (.*) \|$", page.read(), re.MULTILINE)
        self.assertEqual({name: (kind, text) for name, kind, text in rows},
                         {**families(self.metrics()), **OF_A_GATEWAY})
        self.assertEqual(len(rows), len({name for name, _, _ in rows}))

    def test_deploy_uses_no_other_series(self):
        self.generate(2)
        exported = exported_series(self.metrics()) | set(OF_A_GATEWAY)
        for path in ("overlays/monitoring/dashboard.json", "overlays/monitoring/alerts.yaml", "overlays/replicas/autoscaler.yaml"):
            with open(f"deploy/k8s/{path}", encoding="utf-8") as file:
                used = set(NAME.findall(file.read()))
            self.assertTrue(used, path)
            self.assertLessEqual(used, exported, path)

    def test_promtool_finds_nothing_wrong(self):
        promtool = PROMTOOL if os.path.exists(PROMTOOL) else shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool: it is in Debian's package prometheus")
        self.generate(3)
        done = subprocess.run([promtool, "check", "metrics"], input=self.metrics(), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_status_has_the_ranks_and_the_numbers(self):
        status, headers, body = fetch(self.address, "/status.json")
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        found = json.loads(body)
        self.assertEqual((found["state"], found["text"], [rank["stage"] for rank in found["ranks"]]), ("ready", "ready", ["ready"] * 2))
        self.assertEqual(set(found["metrics"]) | set(found["histograms"]), set(families(self.metrics())))

    def test_the_page_needs_nothing_from_outside(self):
        self.generate(2)
        status, headers, body = fetch(self.address, "/")
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["content-security-policy"])
        self.assertNotRegex(body, r"(src|href)=\"(?!data:,)|url\(|@import|https?://")
        known = set(families(self.metrics()))
        self.assertLessEqual({name for name in NAME.findall(body)}, known, "the page asks for metrics that exist")

    def test_other_requests_are_refused(self):
        self.assertEqual(fetch(self.address, "/metrics", "HEAD")[::2], (200, ""))
        self.assertEqual(fetch(self.address, "/metrics", "POST")[0], 405)
        for path in ("/etc/passwd", "/../../etc/passwd", "/metrics/", "/status.json/x"):
            self.assertEqual(fetch(self.address, path)[0], 404, path)
        host, port = self.address.split(":")
        for garbage in (b"\0" * 100, b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"x" * 100_000):
            with socket.create_connection((host, int(port)), timeout=processes.PATIENCE_S) as connection:
                connection.sendall(garbage)
        self.assertEqual(fetch(self.address, "/metrics")[0], 200)

    def test_requests_that_never_end_do_not_keep_others_waiting(self):
        host, port = self.address.split(":")
        for _ in range(128):
            connection = socket.create_connection((host, int(port)), timeout=processes.PATIENCE_S)
            self.addCleanup(connection.close)
            connection.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        self.assertEqual(fetch(self.address, "/metrics")[0], 200)

    def test_a_body_is_not_waited_for(self):
        host, port = self.address.split(":")
        for method in ("GET", "POST"):
            with socket.create_connection((host, int(port)), timeout=processes.PATIENCE_S) as connection:
                connection.sendall(f"{method} /metrics HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n".encode())
                self.assertIn(b" 413 ", connection.recv(4096))
                sent = 0
                try:
                    while not select.select([connection], [], [], 0.2)[0] or connection.recv(4096):
                        connection.sendall(b"x")
                        sent += 1
                        self.assertLess(sent, 60, "the server waits for the body")
                except (BrokenPipeError, ConnectionResetError):
                    pass

    def test_a_port_in_use_is_said_before_the_model_is_read(self):
        code, _, err = processes.run(processes.COORDINATOR, "--model", "no-such-file", "--listen", "127.0.0.1:0",
                                     "--metrics-listen", self.address)
        self.assertEqual(code, 1)
        [line] = [line for line in err.splitlines() if line.startswith("tandem_coordinator: ")]
        self.assertIn(f"--metrics-listen: cannot listen on {self.address}: ", line)
        self.assertIn("Address already in use", line)

    def test_every_line_of_the_log_is_json_with_request_and_trace(self):
        self.generate(7, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
        self.generate(8, traceparent="no trace")
        processes.until(lambda: "of 8 tokens" in self.server.log(), "the log does not name the request")
        lines = [json.loads(line) for line in self.server.log().splitlines()]
        for line in lines:
            self.assertLessEqual({"time", "level", "message"}, set(line))
        self.assertLessEqual({line.get("process") for line in lines}, {None, "rank 0", "rank 1"})
        traces = {line["request_id"]: line.get("trace_id") for line in lines if "request_id" in line}
        self.assertEqual((traces["of 7 tokens"], traces["of 8 tokens"]), (TRACE, None))


class StartTest(unittest.TestCase):
    def test_a_server_that_waits_for_its_ranks_says_so(self):
        token = f"{processes.os.environ['TEST_TMPDIR']}/token"
        with open(token, "w", encoding="ascii") as file:
            file.write("a token\n")
        server = processes.Server("--metrics-listen", "127.0.0.1:0", "--workers", "external", "--worker-token-file", token)
        self.addCleanup(server.process.kill)
        processes.until(lambda: PORT.search(server.log()), "no metrics port")
        address = PORT.search(server.log()).group(1)
        found = json.loads(fetch(address, "/status.json")[2])
        self.assertEqual((found["state"], found["text"]), ("waiting", "waiting for ranks 0/2"))
        self.assertIn('tandem_server_state{state="waiting"} 1\n', fetch(address, "/metrics")[2])
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(processes.PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
