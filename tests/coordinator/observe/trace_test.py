"""`tandem trace` on a real server with two ranks: its file, a worker killed meanwhile, and its end by either side."""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import threading
import unittest

import grpc

sys.path[:0] = ["tests/hostile", "gateway/tandem_gateway"]
import processes  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402
from tandem.v1 import generation_pb2_grpc  # noqa: E402

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "the words of a prompt"
COORDINATOR, REQUESTS, FIRST_RANK = 1, 2, 10
COORDINATOR_PARTS = ["schedule", "build", "submit", "wait", "apply", "deliver"]
RANK_PARTS = ["receive", "encode", "submit", "compute"]
KINDS = {"prefill", "decode", "mixed"}
ROUNDING_US = 0.01


def output():
    return os.path.join(os.environ["TEST_TMPDIR"], f"trace-{os.urandom(4).hex()}.json")


class Recording:
    """`tandem trace`, once it records."""

    def __init__(self, address, seconds=60):
        self.path = output()
        self.process = subprocess.Popen([processes.TANDEM, "trace", "--server", address, "--seconds", str(seconds), "-o", self.path],
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert line == f"recording for {seconds} s\n", line

    def wait(self):
        """(exit code, the rest of stderr)"""
        err = self.process.communicate(timeout=processes.PATIENCE_S)[1]
        return self.process.returncode, err

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        assert SECRET not in text
        return json.loads(text)


class TraceCase(unittest.TestCase):
    def setUp(self):
        self.server = processes.Server("--speculation", "off")
        self.addCleanup(self.server.kill)
        self.assertTrue(self.server.wait_ready(), self.server.log())
        self.stub = generation_pb2_grpc.GenerationStub(grpc.insecure_channel(self.server.address, options=(("grpc.enable_http_proxy", 0),)))

    def generate(self, name, max_tokens, on_token=lambda: None):
        request = api.GenerateRequest(text=SECRET, request_id=name)
        request.sampling.max_tokens = max_tokens
        request.sampling.ignore_eos = True
        metadata = [("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")]
        for _ in self.stub.Generate(request, timeout=processes.PATIENCE_S, metadata=metadata):
            on_token()

    def check_slices(self, trace):
        """Slices of a track lie in each other or apart; the steps' of a track: [(name, args, [part])]."""
        tracks = collections.defaultdict(list)
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0, event)
                tracks[event["pid"], event["tid"]].append(event)
        steps = collections.defaultdict(list)
        for track, slices in tracks.items():
            stack = []
            for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
                while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"] + ROUNDING_US and event["name"] in KINDS:
                    stack.pop()
                if event["name"] == "collectives" and stack:
                    self.assertLessEqual(stack[-1]["ts"] + stack[-1]["dur"], event["ts"] + ROUNDING_US, "collectives overlap")
                if event["name"] in KINDS or event["name"] == "collectives":
                    self.assertFalse([e for e in stack if e["name"] in KINDS], "steps of a track overlap")
                    stack = [event]
                    steps[track].append((event["name"], event["args"], []))
                    continue
                self.assertGreaterEqual(event["ts"], stack[0]["ts"] - ROUNDING_US)
                self.assertLessEqual(event["ts"] + event["dur"], stack[0]["ts"] + stack[0]["dur"] + ROUNDING_US, event)
                steps[track][-1][2].append(event["name"])
        return steps

    def check_steps(self, trace):
        """Every rank did every settled step, in its parts; the settled steps by number."""
        steps = self.check_slices(trace)
        settled = {}
        for (pid, _), found in steps.items():
            for name, args, parts in found if pid == COORDINATOR else []:
                self.assertEqual(name, args["kind"])
                self.assertEqual(sorted(parts), sorted(COORDINATOR_PARTS if args["settled"] else COORDINATOR_PARTS[:3]))
                if args["settled"]:
                    settled[args["step"]] = args
        self.assertEqual({pid for pid, _ in steps}, {COORDINATOR, FIRST_RANK, FIRST_RANK + 1})
        for pid in (FIRST_RANK, FIRST_RANK + 1):
            ran = {args["step"]: (name, args["epoch"], args["collective_us"]) for name, args, parts in steps[pid, 1]
                   if self.assertEqual(sorted(parts), sorted(RANK_PARTS)) is None}
            self.assertLessEqual(set(settled), set(ran))
            self.assertEqual(len(ran), len(steps[pid, 2]), "each has its collectives")
            for number, args in settled.items():
                self.assertEqual(ran[number][:2], (args["kind"], args["epoch"]))
        self.check_arrows(trace)
        return settled

    def check_arrows(self, trace):
        """From a submit of the coordinator to the step of each rank, and forwards."""
        ends = {kind: {e["id"]: e for e in trace["traceEvents"] if e["ph"] == kind} for kind in "sf"}
        self.assertEqual(set(ends["s"]), set(ends["f"]))
        slices = collections.defaultdict(set)
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                slices[event["pid"], event["tid"], event["ts"]].add(event["name"])
        for arrow, begin in ends["s"].items():
            end = ends["f"][arrow]
            self.assertGreaterEqual(end["ts"] + 1, begin["ts"], "ranks tell whole microseconds")
            self.assertIn("submit", slices[begin["pid"], begin["tid"], begin["ts"]])
            self.assertIn("receive", slices[end["pid"], end["tid"], end["ts"]])

    def check_requests(self, trace):
        """{name: ([phase], whether it has ended)}, which nest; and the arguments of each begin and end."""
        phases, stacks, ended, args = collections.defaultdict(list), collections.defaultdict(list), {}, {}
        for event in trace["traceEvents"]:
            if event["ph"] == "b":
                self.assertLess(len(stacks[event["id"]]), 2)
                if stacks[event["id"]]:
                    phases[stacks[event["id"]][0]].append(event["name"])
                else:
                    args[event["name"]] = [event["args"]]
                stacks[event["id"]].append(event["name"])
            elif event["ph"] == "e":
                name = stacks[event["id"]].pop()
                self.assertEqual(event["name"], name)
                if not stacks[event["id"]]:
                    ended[name] = True
                    args[name].append(event["args"])
        return {name: (found, ended.get(name, False)) for name, found in phases.items()}, args

    def names(self, trace):
        return {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}


class TraceTest(TraceCase):
    def test_requests_go_on_when_a_worker_is_killed(self):
        recording = Recording(self.server.address)
        self.generate("short", 20)
        killed = threading.Event()

        def kill():
            if not killed.is_set():
                killed.set()
                os.kill(processes.children(self.server.process.pid)[1], signal.SIGKILL)

        self.generate("long", 200, kill)
        self.assertEqual(self.server.stop(), 0)
        code, err = recording.wait()
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^\S+: \d+ steps, 2 requests\ntandem: .*the server is shutting down\n$")
        trace = recording.read()
        self.assertEqual(trace["otherData"]["tensor_parallel_size"], 2)
        self.assertEqual(trace["otherData"]["dropped_events"], 0)
        self.assertEqual(self.names(trace), {COORDINATOR: "coordinator", REQUESTS: "requests", FIRST_RANK: "rank 0", FIRST_RANK + 1: "rank 1"})

        settled = self.check_steps(trace)
        self.assertGreaterEqual(len(settled), 20 + 200)
        self.assertEqual({args["epoch"] for args in settled.values()}, {1, 2})
        first = settled[min(settled)]
        self.assertEqual((first["kind"], first["num_sequences"], first["decode_tokens"]), ("prefill", 1, 0))
        requests, args = self.check_requests(trace)
        phases = ["queue", "prefill", "decode"]
        self.assertEqual(requests, {"request short": (phases, True), "request long": (phases + phases, True)})
        for name, tokens in (("short", 20), ("long", 200)):
            begin, end = args["request " + name]
            self.assertEqual((begin["request_id"], begin["trace_id"]), (name, TRACE))
            self.assertEqual((end["reason"], end["completion_tokens"]), ("length", tokens))
        self.assertEqual(first["prefill_tokens"], args["request short"][0]["prompt_tokens"])
        moments = [e for e in trace["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([e["name"] for e in moments if e["s"] == "g"], ["workers lost", "workers replaced"])
        [reason] = [e["args"]["reason"] for e in moments if e["name"] == "workers lost"]
        self.assertRegex(reason, r"^rank \d \(pid \d+\): killed by signal 9 ")
        self.assertIn("request long rewound", [e["name"] for e in moments])

    def test_many_requests(self):
        over = threading.Event()

        def run(client):
            for turn in range(10_000):
                self.generate(f"{client} {turn}", 12)
                if over.is_set():
                    return

        clients = [threading.Thread(target=run, args=(client,)) for client in range(6)]
        for client in clients:
            client.start()
        try:
            recording = Recording(self.server.address, seconds=3)
            code, err = recording.wait()
        finally:
            over.set()
            for client in clients:
                client.join()
        self.assertEqual(code, 0)
        self.assertRegex(err, r"^\S+: \d+ steps, \d+ requests\n$")
        trace = recording.read()
        settled = self.check_steps(trace)
        self.assertTrue({args["kind"] for args in settled.values()} & {"mixed", "decode"})
        requests, args = self.check_requests(trace)
        whole = ["queue", "prefill", "decode"]
        for name, (phases, ended) in requests.items():
            self.assertEqual(phases, whole[:len(phases)])
            if ended:
                self.assertEqual((phases, args[name][1]["completion_tokens"]), (whole, 12))
        self.assertGreaterEqual(sum(ended for _, ended in requests.values()), 1)
        self.assertLessEqual(len(requests) - sum(ended for _, ended in requests.values()), 6)

    def test_one_at_a_time_until_its_client_is_gone(self):
        first = Recording(self.server.address)
        command = (processes.TANDEM, "trace", "--server", self.server.address, "--seconds", "0.05", "-o")
        code, _, err = processes.run(*command, output())
        self.assertEqual((code, err), (1, "tandem: another recording is being made; there is one at a time\n"))
        first.process.kill()
        first.wait()
        path = output()
        processes.until(lambda: processes.run(*command, path)[0] == 0, "the recording has not ended with its client")
        with open(path, encoding="utf-8") as file:
            self.assertFalse(self.check_slices(json.load(file)))

    def test_standard_output_and_bad_use(self):
        command = (processes.TANDEM, "trace", "--server", self.server.address)
        code, out, err = processes.run(*command, "--seconds", "0.05", "--output", "-")
        self.assertEqual((code, json.loads(out)["displayTimeUnit"]), (0, "ms"))
        self.assertEqual(err, "recording for 0.05 s\n-: 0 steps, 0 requests\n")
        for seconds in ("0", "61", "nan", "soon"):
            code, out, err = processes.run(*command, "--seconds", seconds)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, r"^tandem: --seconds is .*, it must be .*\n$")
        code, out, err = processes.run(*command, "--seconds", "0.05", "-o", "/no/such/folder/file")
        self.assertEqual((code, out), (1, ""))
        self.assertTrue(re.fullmatch(r"tandem: /no/such/folder/file: No such file or directory\n", err), err)


if __name__ == "__main__":
    unittest.main()
