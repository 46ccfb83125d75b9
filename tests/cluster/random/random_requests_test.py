"""A request gets the same answer whatever else the server does: random requests, all at once, on servers with little KV
memory, chunks of 2, 7, 16 and 48 tokens, 1 to 7 drafts, and workers that are killed, each against the same request alone on
a plain server.

RANDOM_REQUESTS=2000 is the long run, RANDOM_SEED=N another draw. A failure is made smaller before it is printed.
"""

import asyncio
import os
import signal
import sys
import unittest

import grpc
import grpc.aio

sys.path[:0] = ["gateway/tandem_gateway", "tests/cluster/random", "tests/gateway", "tests/hostile"]
import processes  # noqa: E402
import programs  # noqa: E402

from drawn_requests import drawn_request, without_each_field  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402
from tandem.v1 import generation_pb2_grpc as rpc  # noqa: E402

NUM_REQUESTS = int(os.environ.get("RANDOM_REQUESTS", "200"))
SEED = int(os.environ.get("RANDOM_SEED", "1"))
NUM_KILLS = 3
CONTEXT = ("--max-model-len", "640")
PLAIN = (*CONTEXT, "--no-overlap", "--no-enable-prefix-caching", "--speculation", "off", "--max-num-seqs", "4")
# 640 tokens need 80 of these blocks: a few sequences have room, and are preempted.
BUSY = (*CONTEXT, "--speculation", "ngram", "--max-num-seqs", "16", "--block-size", "8", "--num-kv-blocks", "150",
        "--max-num-batched-tokens", "48", "--max-queued-requests", "8192", "--max-restarts", "100")
CHUNKS = (2, 7, 16, 48)
DRAFT_MODEL = ("--speculation", "draft", "--draft-model", "models/demo-draft.gguf")


class Answer:
    """What a client gets for one request, by continuation; an error is an answer too."""

    def __init__(self):
        self.parts = {}
        self.error = None

    def add(self, message):
        part = self.parts.setdefault(message.index, {"text": "", "token_ids": [], "logprobs": [], "prompt_logprobs": []})
        part["text"] += message.text
        part["token_ids"] += message.token_ids
        for name in ("logprobs", "prompt_logprobs"):
            part[name] += [one.SerializeToString(deterministic=True) for one in getattr(message, name)]
        if message.finish_reason:
            part["finish_reason"] = message.finish_reason
            part["matched_stop"] = message.matched_stop_string or message.matched_stop_token_id
            usage = message.usage
            part["usage"] = (usage.prompt_tokens, usage.completion_tokens)
            assert usage.accepted_draft_tokens <= min(usage.draft_tokens, usage.completion_tokens), usage

    def __eq__(self, other):
        return (self.parts, self.error) == (other.parts, other.error)


async def ask(stub, request):
    answer = Answer()
    try:
        async for message in stub.Generate(request, timeout=programs.PATIENCE_S * 5):
            answer.add(message)
    except grpc.aio.AioRpcError as error:
        answer.error = (error.code().name, error.details())
    return answer


async def ask_all(address, requests, at_once):
    places = asyncio.Semaphore(at_once)
    async with grpc.aio.insecure_channel(address, (("grpc.enable_http_proxy", 0),)) as channel:
        stub = rpc.GenerationStub(channel)

        async def one(request):
            async with places:
                return await ask(stub, request)

        return await asyncio.gather(*(one(request) for request in requests))


def answers(server, requests, at_once=1):
    return asyncio.run(ask_all(server.address, requests, at_once))


async def kill_workers(server):
    """Each time that a few steps are done after the last time, at most NUM_KILLS times."""
    async with grpc.aio.insecure_channel(server.address, (("grpc.enable_http_proxy", 0),)) as channel:
        stub, steps = rpc.GenerationStub(channel), 0
        for kill in range(NUM_KILLS):
            while True:
                metrics = {one.name: one.value for one in (await stub.GetStats(api.GetStatsRequest())).metrics}
                if metrics["tandem_restarts_total"] == kill and metrics["tandem_steps_total"] >= steps + 50:
                    break
                await asyncio.sleep(0.01)
            steps = metrics["tandem_steps_total"]
            for worker in processes.children(server.process.pid):
                os.kill(worker, signal.SIGKILL)


class RandomRequestsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.plain = programs.start_coordinator(*PLAIN)
        cls.addClassCleanup(cls.plain.kill)
        cls.requests = [drawn_request(f"{SEED}-{i}") for i in range(NUM_REQUESTS)]
        cls.expected = answers(cls.plain, cls.requests)

    def start(self, *flags):
        server = programs.start_coordinator(*BUSY, *flags)
        self.addCleanup(server.kill)
        return server

    def check(self, server, found, expected=None, plain=None, part=slice(None)):
        """That the answers to this part of the requests are as expected."""
        expected = self.expected[part] if expected is None else expected
        self.assertEqual(len(found), len(expected))
        wrong = [i for i, (one, other) in enumerate(zip(found, expected)) if one != other]
        if wrong:
            index = range(NUM_REQUESTS)[part][wrong[0]]
            self.fail(f"RANDOM_SEED={SEED}: {len(wrong)} of {len(found)} answers are wrong, the first is "
                      f"{index}:\n{self.smaller(server, plain or self.plain, self.requests[index])}")

    def smaller(self, server, plain, request):
        """The request alone if it is wrong then too, with as few fields as will do."""
        def differs(request):
            return answers(server, [request]) != answers(plain, [request])

        if not differs(request):
            return f"{request}right when it is sent alone"
        while smaller := next(filter(differs, without_each_field(request)), None):
            request = smaller
        return f"{request}{answers(server, [request])[0].parts}\n{answers(plain, [request])[0].parts}"

    def test_drawn_requests_are_what_they_should_be(self):
        lengths = [len(part["token_ids"]) for one in self.expected for part in one.parts.values()]
        self.assertLess(sum(one.error is not None for one in self.expected), NUM_REQUESTS / 10,
                        [one.error for one in self.expected if one.error])
        self.assertGreater(max(lengths), 100)
        self.assertEqual(min(lengths), 1)

    def test_all_at_once(self):
        server = self.start()
        self.check(server, answers(server, self.requests, NUM_REQUESTS))
        stats = programs.stats(server.address)
        for name in ("preemptions_total", "prefix_cache_hits_total"):
            self.assertGreater(stats[f"tandem_{name}"], 0, name)
        self.assertEqual(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"])

    def test_few_at_once_have_drafts(self):
        server = self.start("--max-draft-tokens", "3", "--scheduling-policy", "prefill-first")
        self.check(server, answers(server, self.requests, 3))
        self.assertGreater(programs.stats(server.address)["tandem_spec_decode_num_accepted_tokens_total"], 0)

    def test_without_overlap(self):
        server = self.start("--no-overlap")
        self.check(server, answers(server, self.requests, 32))

    def test_every_number_of_drafts_and_chunks(self):
        # A seventh of the requests with each number.
        for guesser in ((), DRAFT_MODEL):
            num_accepted = 0
            for most in range(1, 8):
                part = slice(most - 1, None, 7)
                server = self.start("--max-draft-tokens", str(most), "--chunked-prefill-size",
                                    str(CHUNKS[most % len(CHUNKS)]), *guesser)
                self.check(server, answers(server, self.requests[part], 3), part=part)
                num_accepted += programs.stats(server.address)["tandem_spec_decode_num_accepted_tokens_total"]
                server.kill()
            self.assertGreater(num_accepted, 0)

    def answers_of_killed(self, server, requests, at_once):
        async def both():
            killer = asyncio.create_task(kill_workers(server))
            found = await ask_all(server.address, requests, at_once)
            killer.cancel()
            return found

        found = asyncio.run(both())
        self.assertGreater(programs.stats(server.address)["tandem_restarts_total"], 0)
        return found

    def test_workers_are_killed(self):
        server = self.start()
        self.check(server, self.answers_of_killed(server, self.requests, NUM_REQUESTS))

    def test_a_draft_model(self):
        server = self.start(*DRAFT_MODEL)
        self.check(server, answers(server, self.requests, 3))
        self.assertGreater(programs.stats(server.address)["tandem_spec_decode_num_accepted_tokens_total"], 0)

    def test_a_draft_model_of_many_at_once(self):
        server = self.start(*DRAFT_MODEL)
        self.check(server, answers(server, self.requests, NUM_REQUESTS))
        self.assertGreater(programs.stats(server.address)["tandem_preemptions_total"], 0)

    def test_workers_with_a_draft_model_are_killed(self):
        ranks = ("--tensor-parallel-size", "2")
        plain = programs.start_coordinator(*PLAIN, *ranks)
        self.addCleanup(plain.kill)
        requests = self.requests[:60]
        server = self.start(*DRAFT_MODEL, *ranks)
        self.check(server, self.answers_of_killed(server, requests, 3), answers(plain, requests), plain, slice(60))
        # Whether one is right hangs on when workers are killed.
        self.assertGreater(programs.stats(server.address)["tandem_spec_decode_num_draft_tokens_total"], 0)


if __name__ == "__main__":
    unittest.main()
