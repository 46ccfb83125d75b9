"""Servers that come and go, several servers, signals, flags."""

import json
import socket
import subprocess
import sys
import unittest

import grpc

sys.path[:0] = ["tests/gateway", "gateway/tandem_gateway"]
import programs  # noqa: E402
from health.v1 import health_pb2, health_pb2_grpc  # noqa: E402

# Computed for many seconds, if it is not cancelled.
LONG = {"prompt": "Story:", "n": 32, "max_tokens": 900, "ignore_eos": True}
STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 5}


class LifeTest(unittest.TestCase):

    def start(self, start, *arguments):
        program = start(*arguments)
        self.addCleanup(program.kill)
        return program

    def wait_health(self, gateway, status):
        programs.until(lambda: programs.call(gateway.address, "/health")[0] == status,
                       f"/health is not {status}")

    def test_a_server_that_ends_and_comes_back(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address)
        self.wait_health(gateway, 200)
        self.assertEqual(coordinator.stop(), 0)
        self.wait_health(gateway, 503)
        status, headers, content = programs.call(gateway.address, "/v1/completions", STORY)
        self.assertEqual((status, headers["retry-after"], content["error"]["type"]),
                         (503, "1", "server_error"))
        self.start(programs.start_coordinator, "--listen", coordinator.address)
        self.wait_health(gateway, 200)
        self.assertEqual(programs.call(gateway.address, "/v1/completions", STORY)[0], 200)

    def test_two_servers_of_which_one_is_not_there(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", "127.0.0.1:1", "--server",
                             coordinator.address)
        self.wait_health(gateway, 200)
        for _ in range(4):
            self.assertEqual(programs.call(gateway.address, "/v1/completions", STORY)[0], 200)

    def test_two_servers_share_the_choices(self):
        servers = [self.start(programs.start_coordinator) for _ in range(2)]
        gateway = self.start(programs.start_gateway, *(
            flag for one in servers for flag in ("--server", one.address)))
        programs.until(lambda: gateway.log().count(": serving") == 2, "a server is not seen")
        streams = [programs.open_stream(gateway.address, LONG) for _ in range(2)]
        self.assertEqual([programs.stats(one.address)["tandem_requests_total"] for one in servers],
                         [LONG["n"]] * 2)
        for connection in streams:
            connection.close()

    def test_a_server_whose_watches_are_all_taken(self):
        coordinator = self.start(programs.start_coordinator)
        with grpc.insecure_channel(coordinator.address, options=(("grpc.enable_http_proxy", 0),)) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(1024)]
            for one in watches:
                next(one)
            with self.assertRaises(grpc.RpcError):
                next(stub.Watch(health_pb2.HealthCheckRequest()))
            gateway = self.start(programs.start_gateway, "--server", coordinator.address)
            self.wait_health(gateway, 200)
            self.assertEqual(coordinator.stop(), 0)
            self.wait_health(gateway, 503)

    def test_without_a_server_no_body_is_read(self):
        gateway = self.start(programs.start_gateway, "--server", "127.0.0.1:1")
        host, port = gateway.address.split(":")
        with socket.create_connection((host, int(port)), programs.PATIENCE_S) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
            self.assertIn(b" 503 ", connection.recv(4096))

    def test_models_by_name(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address,
                             "--served-model-name", "demo")
        self.wait_health(gateway, 200)
        _, _, models = programs.call(gateway.address, "/v1/models")
        self.assertEqual([one["id"] for one in models["data"]], ["demo"])
        answer = programs.call(gateway.address, "/v1/completions", {**STORY, "model": "demo"})[2]
        self.assertEqual(answer["model"], "demo")

    def test_a_full_queue_is_429(self):
        coordinator = self.start(programs.start_coordinator, "--max-num-seqs", "1",
                                 "--max-queued-requests", "1")
        gateway = self.start(programs.start_gateway, "--server", coordinator.address)
        self.wait_health(gateway, 200)
        # Of four at once one runs and one waits.
        status, headers, content = programs.call(gateway.address, "/v1/completions", {
            "prompt": "Story:", "n": 4, "max_tokens": 900, "ignore_eos": True})
        self.assertEqual((status, headers["retry-after"]), (429, "1"))
        self.assertEqual(content["error"]["code"], "rate_limit_exceeded")
        programs.until(lambda: programs.call(gateway.address, "/v1/completions", STORY)[0] == 200,
                       "the other choices were not cancelled")

    def test_a_trace_goes_on_to_the_server_and_into_both_logs(self):
        json_log = ("--log-format", "json", "--log-level", "debug")
        coordinator = self.start(programs.start_coordinator, *json_log)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address, *json_log)
        self.wait_health(gateway, 200)
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        for header in (f"00-{trace}-00f067aa0ba902b7-01", "none\xe4"):
            answer = programs.call(gateway.address, "/v1/completions", STORY,
                                   headers={"traceparent": header})
            self.assertEqual(answer[0], 200, answer)
        for program in (coordinator, gateway):
            programs.until(lambda: program.log().count("generated") + program.log().count("200 after") == 2,
                           "the requests are not in the log")
            lines = [json.loads(line) for line in program.log().splitlines()]
            self.assertEqual([line["trace_id"] for line in lines if "trace_id" in line], [trace])

    def test_more_requests_than_allowed_are_429(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address,
                             "--max-requests", "1")
        self.wait_health(gateway, 200)
        stream = programs.open_stream(gateway.address, LONG)
        status, headers, content = programs.call(gateway.address, "/v1/completions", STORY)
        stream.close()
        self.assertEqual((status, headers["retry-after"]), (429, "1"), content)
        programs.until(lambda: programs.call(gateway.address, "/v1/completions", STORY)[0] == 200,
                       "the place is not free again")

    def test_a_server_that_dies_ends_a_stream_with_an_error(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address)
        self.wait_health(gateway, 200)
        stream = programs.open_stream(gateway.address, LONG)
        coordinator.process.kill()
        last = stream.response.read().decode().split("\n\n")[-2]
        stream.close()
        error = json.loads(last.removeprefix("data: "))["error"]
        self.assertEqual((error["type"], error["code"]), ("server_error", "unavailable"))

    def test_sigterm_lets_a_stream_finish(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address)
        self.wait_health(gateway, 200)
        connection = programs.open_stream(gateway.address, {
            "prompt": "Story:", "max_tokens": 600, "ignore_eos": True})
        gateway.process.terminate()
        content = connection.response.read()
        self.assertTrue(content.endswith(b"data: [DONE]\n\n"), content[-200:])
        connection.close()
        self.assertEqual(gateway.process.wait(programs.PATIENCE_S), 0, gateway.log())

    def test_logs_have_no_prompts(self):
        coordinator = self.start(programs.start_coordinator)
        gateway = self.start(programs.start_gateway, "--server", coordinator.address,
                             "--log-level", "debug")
        self.wait_health(gateway, 200)
        for body in ({**STORY, "prompt": "SECRET"}, {"prompt": "SECRET", "top_p": 3},
                     b'{"prompt": "SECRET'):
            programs.call(gateway.address, "/v1/completions", body)
        self.assertEqual(gateway.stop(), 0)
        self.assertIn("POST /v1/completions: 200 after", gateway.log())
        self.assertNotIn("SECRET", gateway.log())

    def test_bad_usage_is_one_line_and_2(self):
        for arguments in (["--listen", "x"], ["--bogus"], ["--chat-template", "/no/such"],
                          ["--max-requests", "0"], ["--tool-parser", "none"]):
            done = subprocess.run([programs.GATEWAY, *arguments], capture_output=True, text=True,
                                  timeout=programs.PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertTrue(done.stderr.startswith("tandem_gateway: "), done.stderr)

    def test_an_address_in_use(self):
        gateway = self.start(programs.start_gateway)
        done = subprocess.run([programs.GATEWAY, "--listen", gateway.address], capture_output=True,
                              text=True, timeout=programs.PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"tandem_gateway: --listen {gateway.address}: Address already in use\n"))


if __name__ == "__main__":
    unittest.main()
