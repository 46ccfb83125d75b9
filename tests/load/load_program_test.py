"""tandem_load as a program: against the real server, and against stubs that behave badly."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path("tests/load").resolve()), str(Path("tests/security").resolve())]

import openai_stub  # noqa: E402
from authority import Authority  # noqa: E402

LOAD = "tests/load/tandem_load"
STUB = "tests/load/tandem_stub_server"
PATIENCE_S = 150


class Server:
    """A server's process, killed at the end of the `with`; `address` is where it listens."""

    def __init__(self, *argv: str):
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.address = re.search(r"listening on ([^,\s]+)", line).group(1)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def real_server(*flags: str) -> Server:
    return Server("coordinator/tandem_coordinator", "--model", "tests/golden/arch/llama/model.gguf",
                  "--listen", "127.0.0.1:0", "--worker-binary", "worker/tandem_worker",
                  "--threads-per-worker", "1", "--max-num-seqs", "8", *flags)


def percentile_metrics(result: dict) -> dict[str, np.ndarray]:
    """The latencies of a detailed result in ms, from its samples only."""
    counts = np.array([outcome == "completed" and not slow for outcome, slow in
                       zip(result["outcomes"], result["slow_readers"])])
    ttft = np.array(result["ttfts"])[counts]
    e2el = np.array(result["latencies"])[counts]
    output = np.array(result["output_lens"])[counts]
    several = output > 1
    itl = [gap for gaps, counted in zip(result["itls"], counts) if counted for gap in gaps]
    return {"ttft": ttft * 1000, "e2el": e2el * 1000, "itl": np.array(itl) * 1000,
            "tpot": (e2el[several] - ttft[several]) / (output[several] - 1) * 1000}


class LoadProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        self.json = os.path.join(self.folder.name, "result.jsonl")
        self.html = os.path.join(self.folder.name, "report.html")

    def load(self, *flags: str) -> subprocess.CompletedProcess:
        return subprocess.run([LOAD, *flags], capture_output=True, text=True, timeout=PATIENCE_S)

    def results(self) -> list[dict]:
        return [json.loads(line) for line in Path(self.json).read_text().splitlines()]

    def test_percentiles_agree_with_numpy(self) -> None:
        with Server(STUB) as server:
            done = self.load("--server", server.address, "--num-prompts", "300", "--request-rate",
                             "400", "--burstiness", "0.5", "--random-input-len", "20",
                             "--random-output-len", "30", "--random-range-ratio", "0.9",
                             "--cancel-fraction", "0.1", "--slow-fraction", "0.05",
                             "--slow-read-delay", "1ms", "--metric-percentiles", "1,50,90,99,99.9",
                             "--goodput", "ttft:3,e2el:20", "--save-result", self.json,
                             "--save-detailed")
        self.assertEqual(done.returncode, 0, done.stderr)
        result, = self.results()
        self.assertEqual(result["completed"], 270)
        self.assertEqual(result["cancelled"], 30)
        metrics = percentile_metrics(result)
        for name, values in metrics.items():
            self.assertGreater(len(values), 200)
            expected = {f"mean_{name}_ms": np.mean(values), f"std_{name}_ms": np.std(values),
                        f"median_{name}_ms": np.median(values)}
            for percent in (1, 50, 90, 99, 99.9):
                expected[f"p{percent}_{name}_ms"] = np.percentile(values, percent)
            for key, value in expected.items():
                np.testing.assert_allclose(result[key], value, rtol=1e-9, atol=1e-9, err_msg=key)
        good = np.sum((metrics["ttft"] <= 3) & (metrics["e2el"] <= 20))
        self.assertAlmostEqual(result["request_goodput"], good / result["duration"])
        completed = [length for length, outcome in zip(result["output_lens"], result["outcomes"])
                     if outcome == "completed"]
        self.assertEqual(sum(completed), result["total_output_tokens"])
        self.assertAlmostEqual(result["output_throughput"], sum(completed) / result["duration"])

    def test_real_server_under_every_loop(self) -> None:
        common = ("--random-input-len", "24", "--random-output-len", "6", "--ignore-eos",
                  "--save-result", self.json, "--stats-interval", "10ms", "--save-detailed",
                  "--num-warmups", "1")
        with real_server() as server:
            closed = self.load("--server", server.address, "--max-concurrency", "1,4",
                               "--num-prompts", "10", "--html", self.html, *common)
            self.assertEqual(closed.returncode, 0, closed.stderr)
            one, four = self.results()
            open_loop = self.load("--server", server.address, "--request-rate", "50",
                                  "--num-prompts", "20", "--cancel-fraction", "0.1", *common)
            self.assertEqual(open_loop.returncode, 0, open_loop.stderr)
            poisson, = self.results()
        self.assertEqual([one["max_concurrency"], four["max_concurrency"]], [1, 4])
        for result in (one, four):
            self.assertEqual(result["completed"], 10)
            self.assertEqual(result["output_lens"], [6] * 10)
            self.assertEqual(result["input_lens"], [24] * 10)
            self.assertTrue(result["server_stats"])
        self.assertEqual(one["max_concurrent_requests"], 1)
        self.assertLessEqual(four["max_concurrent_requests"], 4)
        self.assertEqual(poisson["completed"] + poisson["cancelled"], 20)
        # The server may have sent all tokens in fewer messages than those after which it cancels.
        self.assertLessEqual(poisson["cancelled"], 2)
        html = Path(self.html).read_text()
        self.assertIn("Requests in the server", html)
        for outside in ("http:", "https:", "src=", "@import"):
            self.assertNotIn(outside, html)
        self.assertIn("TTFT: from the intended send time", closed.stdout)
        self.assertNotIn("\x1b", closed.stderr, "no progress bar without a terminal")

    def test_datasets_of_files(self) -> None:
        trace = Path(self.folder.name, "trace.jsonl")
        trace.write_text("".join(json.dumps({"timestamp": 40 * i, "input_length": 600,
                                             "output_length": 3, "hash_ids": [1, i + 2]}) + "\n"
                                 for i in range(5)))
        talks = Path(self.folder.name, "talks.json")
        talks.write_text(json.dumps([{"conversations": [{"value": "Once upon a time"},
                                                        {"value": "there was a fox"}]}] * 4))
        with Server(STUB) as server:
            base = ("--server", server.address, "--save-result", self.json, "--save-detailed")
            replay = self.load("--dataset-name", "replay", "--dataset-path", str(trace), *base)
            self.assertEqual(replay.returncode, 0, replay.stderr)
            result, = self.results()
            np.testing.assert_allclose(result["start_times"], [0, 0.04, 0.08, 0.12, 0.16])
            self.assertEqual(result["input_lens"], [600] * 5)
            chat = self.load("--dataset-name", "sharegpt", "--dataset-path", str(talks), *base)
            self.assertEqual(chat.returncode, 0, chat.stderr)
            result, = self.results()
            self.assertEqual(result["output_lens"], [len("there was a fox")] * 4)
            prefix = self.load("--dataset-name", "prefix", "--num-prompts", "20", *base)
            self.assertEqual(prefix.returncode, 0, prefix.stderr)
            result, = self.results()
            self.assertEqual(result["input_lens"], [512] * 20)

    def test_sweep_finds_a_limit(self) -> None:
        # 20 messages of 1 ms each, one request at a time: at most 50 requests per second.
        with Server(STUB, "--token-interval", "1ms") as server:
            done = self.load("--server", server.address, "--sweep", "--request-rate", "20",
                             "--max-concurrency", "1", "--random-input-len", "4",
                             "--random-output-len", "20", "--max-duration", "2s", "--save-result",
                             self.json, "--html", self.html)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Saturation: .*it did not with [0-9.]+ requests/s")
        rates = [result["request_rate"] for result in self.results()]
        self.assertEqual(rates[0], 20)
        self.assertGreater(len(rates), 2)

    def test_server_that_dies_mid_run(self) -> None:
        with Server(STUB, "--die-after", "500") as server:
            done = self.load("--server", server.address, "--num-prompts", "1000",
                             "--max-concurrency", "8", "--random-output-len", "20", "--save-result",
                             self.json, "--html", self.html)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tandem_load: the server is lost", done.stderr)
        result, = self.results()
        self.assertEqual(result["end"], "server_lost")
        self.assertLess(result["completed"], 25)
        self.assertGreater(result["failed"], 0)
        self.assertGreater(result["not_sent"], 900)
        self.assertEqual(result["completed"] + result["failed"] + result["cut"]
                         + result["not_sent"], 1000)
        self.assertTrue(os.path.exists(self.html))

    def test_server_that_refuses(self) -> None:
        with Server(STUB, "--refuse-every", "3") as server:
            done = self.load("--server", server.address, "--num-prompts", "30",
                             "--random-output-len", "2", "--save-result", self.json)
        self.assertEqual(done.returncode, 1)
        self.assertIn("10 requests failed", done.stderr)
        self.assertIn("the queue is full", done.stdout)
        result, = self.results()
        self.assertEqual((result["completed"], result["failed"], result["end"]), (20, 10, "done"))

    def test_server_that_is_slow(self) -> None:
        with Server(STUB, "--token-interval", "1h") as server:
            done = self.load("--server", server.address, "--num-prompts", "3", "--timeout", "300ms",
                             "--random-output-len", "2", "--save-result", self.json)
        self.assertEqual(done.returncode, 1)
        result, = self.results()
        self.assertEqual((result["completed"], result["failed"]), (0, 3))

    def test_servers_that_want_certificates(self) -> None:
        authority = Authority()
        cert, key = authority.issue("DNS:localhost", "IP:127.0.0.1")
        mine = ("--tls-ca", authority.ca, "--tls-client-cert", cert, "--tls-client-key", key)
        flags = ("--num-prompts", "4", "--random-input-len", "8", "--random-output-len", "2")
        with real_server("--tls-cert", cert, "--tls-key", key, "--tls-client-ca",
                         authority.ca) as server:
            done = self.load("--server", server.address, *mine, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load("--server", server.address, *mine[:2], *flags).returncode, 1)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        tls.load_verify_locations(authority.ca)
        tls.verify_mode = ssl.CERT_REQUIRED
        stub = openai_stub.start(tls=tls)
        self.addCleanup(stub.shutdown)
        for server in (f"127.0.0.1:{stub.server_port}", f"https://localhost:{stub.server_port}"):
            openai = ("--backend", "openai", "--server", server, *flags)
            done = self.load(*openai, *mine)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load(*openai, *mine[:2]).returncode, 1)
        self.assertEqual(len(stub.requests), 8)

    def test_no_server(self) -> None:
        done = self.load("--server", "127.0.0.1:1", "--save-result", self.json)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^tandem_load: 127\.0\.0\.1:1: ")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_interrupt_still_writes(self) -> None:
        with Server(STUB, "--token-interval", "1h") as server:
            process = subprocess.Popen(
                [LOAD, "--server", server.address, "--num-prompts", "50", "--max-concurrency", "5",
                 "--random-output-len", "2", "--save-result", self.json, "--html", self.html],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            running = 0
            while running < 5:  # until its requests have reached the server
                self.assertIsNone(process.poll())
                out = subprocess.run(["client/tandem", "stats", "--server", server.address,
                                      "--json"], capture_output=True, text=True, check=True).stdout
                running = json.loads(out)["tandem_num_requests_running"]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", err)
        result, = self.results()
        self.assertEqual((result["end"], result["cut"], result["not_sent"]), ("interrupted", 5, 45))
        self.assertTrue(os.path.exists(self.html))

    def test_bad_flags(self) -> None:
        for flags in (["--nonsense"], ["--request-rate", "-1"], ["--goodput", "x:1"],
                      ["--num-prompts", "0"], ["--dataset-name", "sharegpt"], ["extra"],
                      ["--save-result", "/no/such/folder/x"], ["--html", "/"]):
            done = self.load(*flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertTrue(done.stderr.startswith("tandem_load: "), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.load("--help").returncode, 0)

    def test_output_that_cannot_be_written(self) -> None:
        with Server(STUB) as server, open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([LOAD, "--server", server.address, "--num-prompts", "1"],
                                  stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be printed", done.stderr)
            done = self.load("--server", server.address, "--num-prompts", "1", "--html",
                             "/proc/report.html")
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("/proc", done.stderr)

    def test_openai_server(self) -> None:
        server = openai_stub.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        address = f"127.0.0.1:{server.server_address[1]}"
        done = self.load("--backend", "openai", "--server", address, "--num-prompts", "40",
                         "--max-concurrency", "1,8", "--num-warmups", "2",
                         "--random-input-len", "9", "--random-output-len", "12",
                         "--cancel-fraction", "0.25",
                         "--slow-fraction", "0.1", "--slow-read-delay", "20ms", "--ignore-eos",
                         "--temperature", "0", "--save-result", self.json, "--save-detailed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.results()), 2)
        for result in self.results():
            self.assertEqual((result["completed"], result["cancelled"]), (30, 10))
            self.assertEqual(result["model_id"], "stub")
            for outcome, length, gaps in zip(result["outcomes"], result["output_lens"],
                                             result["itls"]):
                if outcome == "completed":
                    self.assertEqual((length, len(gaps)), (12, 11))
        request = server.requests[0]
        self.assertEqual(request["model"], "stub")
        self.assertEqual(len(request["prompt"]), 9)
        self.assertTrue(request["ignore_eos"] and request["stream"])
        self.assertEqual(request["temperature"], 0)

    def test_openai_server_that_refuses_or_cuts(self) -> None:
        for settings, completed, error in (({"refuse_every": 2}, 5, "HTTP 429: the queue is full"),
                                           ({"cut_streams": True}, 0, "without a finish reason")):
            server = openai_stub.start(**settings)
            done = self.load("--backend", "openai", "--server",
                             f"http://127.0.0.1:{server.server_address[1]}", "--num-prompts", "10",
                             "--random-output-len", "3", "--save-result", self.json)
            server.shutdown()
            server.server_close()
            self.assertEqual(done.returncode, 1)
            result, = self.results()
            self.assertEqual((result["completed"], result["failed"]), (completed, 10 - completed))
            self.assertIn(error, done.stdout)

    def test_no_openai_server(self) -> None:
        done = self.load("--backend", "openai", "--server", "127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("tandem_load: 127.0.0.1:1: "), done.stderr)


class SimulationTest(unittest.TestCase):
    """`tandem profile` of real workers, and loads on the simulation of their server."""

    # Every step takes 20 ms, whatever was measured.
    STEPS = [flag for setting in ("prefill-tokens=1", "prefill-us=20000", "prefill-position-ns=0",
                                  "decode-sequences=1", "decode-us=20000", "decode-position-ns=0")
             for flag in ("--simulate-with", setting)]
    folder: tempfile.TemporaryDirectory
    profile: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.profile = os.path.join(cls.folder.name, "server.profile")
        done = subprocess.run(
            ["client/tandem", "profile", "--model", "tests/golden/arch/llama/model.gguf",
             "--worker-binary", "worker/tandem_worker", "--threads-per-worker", "1",
             "--max-num-seqs", "8", "--decode", "4", "--repetitions", "1"],
            capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        assert "measuring: decode of 8" in done.stderr, done.stderr
        Path(cls.profile).write_text(done.stdout)

    def simulate(self, *flags: str) -> subprocess.CompletedProcess:
        return subprocess.run([LOAD, "--simulate", self.profile, *flags], capture_output=True,
                              text=True, timeout=PATIENCE_S)

    def results(self, *flags: str) -> list[dict]:
        path = os.path.join(self.folder.name, "result.jsonl")
        done = self.simulate("--random-input-len", "24", "--random-output-len", "6", "--save-result",
                             path, "--save-detailed", "--stats-interval", "10ms", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in Path(path).read_text().splitlines()]

    def test_runs_have_the_results_of_a_server(self) -> None:
        one, eight = self.results("--max-concurrency", "1,8", "--num-prompts", "40", *self.STEPS)
        for result in (one, eight):
            self.assertTrue(result["simulated"])
            self.assertEqual(result["completed"], 40)
            self.assertEqual(result["output_lens"], [6] * 40)
        self.assertEqual({round(ttft, 6) for ttft in one["ttfts"]}, {0.020})
        self.assertEqual({round(gap, 6) for gaps in one["itls"] for gap in gaps}, {0.020})
        self.assertEqual(max(point["running"] for point in one["server_stats"]), 1)
        self.assertEqual(eight["max_concurrent_requests"], 8)

    def test_equal_runs_are_equal(self) -> None:
        flags = ("--request-rate", "50", "--num-prompts", "100", "--cancel-fraction", "0.1")
        first, second = self.results(*flags), self.results(*flags)
        first[0].pop("date"), second[0].pop("date")
        self.assertEqual(first, second)

    def test_settings_can_be_changed(self) -> None:
        result, = self.results("--max-concurrency", "8", "--num-prompts", "16", *self.STEPS,
                               "--simulate-with", "max-num-seqs=2")
        self.assertEqual(max(point["running"] for point in result["server_stats"]), 2)

    def test_a_sweep_finds_the_rate(self) -> None:
        done = self.simulate("--random-input-len", "24", "--random-output-len", "6", "--sweep",
                             "--max-duration", "2s", "--goodput", "ttft:1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Saturation, within --goodput: the server kept up with [0-9.]+, "
                                      r"it did not with [0-9.]+ requests/s\n"
                                      r"Plan with [0-9.]+ requests/s for each server, 85% of that")

    def test_a_sweep_for_what_no_rate_gives_ends_soon(self) -> None:
        results = self.results("--sweep", "--num-prompts", "50", "--goodput", "ttft:10", *self.STEPS)
        self.assertLessEqual(len(results), 3)
        self.assertEqual({result["request_goodput"] for result in results}, {0})

    def test_prompts_of_text_are_encoded_by_the_models_file(self) -> None:
        trace = os.path.join(self.folder.name, "trace.jsonl")
        Path(trace).write_text('{"timestamp": 0, "prompt": "a text", "output_length": 3}\n')
        result, = self.results("--dataset-name", "replay", "--dataset-path", trace)
        self.assertEqual(result["output_lens"], [3])
        self.assertGreater(result["input_lens"][0], 1)

    def test_wrong_flags_are_named(self) -> None:
        for flags, message in (
                (("--slow-fraction", "0.1"), "--slow-fraction needs a server"),
                (("--backend", "openai"), "not of --backend openai"),
                (("--server", "host:1"), "--server, --tls, --token-file and such name a"),
                (("--simulate-with", "max-num-seqs=0"),
                 "--simulate-with: max-num-seqs is 0, it must be from 1 to 4096"),
                (("--simulate-with", "seqs=1"), "no setting 'seqs'"),
                (("--simulate-with", "max-num-batched-tokens=1"), "--max-num-batched-tokens"),
                (("--simulate", "/none"), "--simulate /none: cannot be read")):
            done = self.simulate(*flags)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
