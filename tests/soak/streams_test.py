"""2,000 streams at once, of which a quarter is cancelled and a tenth reads slowly: nothing is lost, and nothing grows.

SOAK_SECONDS=600 is the long run. What it prints is for docs/performance.md; times are not judged.
"""

import asyncio
import os
import random
import statistics
import sys
import time
import unittest

import grpc
import grpc.aio

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

from tandem.v1 import generation_pb2 as api  # noqa: E402
from tandem.v1 import generation_pb2_grpc as rpc  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
STREAMS = 2000
CHANNELS = 4
CANCELLED = 0.25
SLOW = 0.1
SLOW_PAUSE_S = 0.2
# In the second half. The allocator's heaps come and go by some 20 MB with so many streams, whatever is
# left over: a leak of 3 KB per request is more. What a long run prints is the finer measure.
MOST_GROWTH_BYTES = 32 << 20


class Server:
    """A coordinator, and what the kernel says of it."""

    def __init__(self):
        self.program = programs.start_coordinator(
            "--max-num-seqs", "64", "--max-queued-requests", "4096", "--num-kv-blocks", "4096")
        self._proc = f"/proc/{self.program.process.pid}"

    def heap_bytes(self):
        """Resident bytes of no file: the rings of shared memory to the workers fill once, and that is all of them."""
        with open(f"{self._proc}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:"))

    def descriptors(self):
        return len(os.listdir(f"{self._proc}/fd"))


class Tally:
    """What became of the requests."""

    def __init__(self):
        self.finished = 0
        self.cancelled = 0
        self.slow = 0
        self.lost = []
        self.gaps = []  # seconds between messages of a stream that reads at once


async def run_one(stub, draw, tally):
    length = draw.randint(1, 40)
    request = api.GenerateRequest(
        token_ids=api.TokenIds(ids=[draw.randrange(100, 400) for _ in range(draw.randint(1, 24))]),
        sampling=api.SamplingParams(max_tokens=length, ignore_eos=True, temperature=draw.choice((0, 0.8))))
    kind = draw.random()
    cancel_after = draw.randint(0, length - 1) if kind < CANCELLED else None
    is_slow = CANCELLED <= kind < CANCELLED + SLOW
    call = stub.Generate(request)
    num_tokens, reason, last = 0, None, None
    try:
        async for message in call:
            now = time.monotonic()
            if last is not None and not is_slow:
                tally.gaps.append(now - last)
            num_tokens += len(message.token_ids)
            reason = message.finish_reason or reason
            if cancel_after is not None and num_tokens >= cancel_after:
                call.cancel()
            if is_slow:
                await asyncio.sleep(SLOW_PAUSE_S)
            last = time.monotonic()
    except asyncio.CancelledError:
        if cancel_after is None:
            raise
    except grpc.aio.AioRpcError as error:
        tally.lost.append(f"{error.code()}: {error.details()}")
        return
    if cancel_after is not None:
        tally.cancelled += 1
    elif reason != api.FINISH_REASON_LENGTH or num_tokens != length:
        tally.lost.append(f"{num_tokens} of {length} tokens, reason {reason}")
    else:
        tally.finished += 1
        tally.slow += is_slow


async def run_streams(stubs, tally, end):
    async def stream(number):
        draw = random.Random(number)
        while time.monotonic() < end:
            await run_one(stubs[number % CHANNELS], draw, tally)

    await asyncio.gather(*(stream(number) for number in range(STREAMS)))


async def sample_memory(server, end):
    """(seconds, bytes) twice a second."""
    begin, samples = time.monotonic(), []
    while time.monotonic() < end:
        samples.append((time.monotonic() - begin, server.heap_bytes()))
        await asyncio.sleep(0.5)
    return samples


def growth_per_second(samples):
    """Between the medians of the last two quarters: a heap goes down at once when it is trimmed, which a fit follows."""
    quarter = len(samples) // 4
    third, last = samples[2 * quarter:3 * quarter], samples[3 * quarter:]
    change = statistics.median(size for _, size in last) - statistics.median(size for _, size in third)
    return change / (statistics.mean(time for time, _ in last) - statistics.mean(time for time, _ in third))


async def soak(server):
    tally, end = Tally(), time.monotonic() + SECONDS
    # Channels of their own connections.
    channels = [grpc.aio.insecure_channel(server.program.address, (("soak.channel", i),))
                for i in range(CHANNELS)]
    stubs = [rpc.GenerationStub(channel) for channel in channels]
    samples, _ = await asyncio.gather(sample_memory(server, end), run_streams(stubs, tally, end))
    for channel in channels:
        await channel.close()
    return tally, samples


class StreamsTest(unittest.TestCase):

    def test_nothing_is_lost_and_nothing_grows(self):
        server = Server()
        try:
            descriptors = server.descriptors()
            tally, samples = asyncio.run(soak(server))
            self.assertEqual(tally.lost, [])
            for kind in ("finished", "cancelled", "slow"):
                self.assertGreater(getattr(tally, kind), 0, kind)
            programs.until(lambda: server.descriptors() <= descriptors, "descriptors are left over")
            stats = programs.stats(server.program.address)
            self.assertEqual(stats["tandem_num_requests_running"], 0)
            self.assertEqual(stats["tandem_num_requests_waiting"], 0)
            self.assertEqual(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"])
            self.check_memory(samples)
            self.report(tally, samples)
            self.assertEqual(server.program.stop(), 0)
        finally:
            server.program.kill()

    def check_memory(self, samples):
        """From the middle on, when all kinds of streams have come and gone."""
        growth = growth_per_second(samples) * samples[-1][0] / 2
        self.assertLess(growth, MOST_GROWTH_BYTES, samples)

    @staticmethod
    def report(tally, samples):
        gaps = sorted(tally.gaps)
        print(f"{SECONDS:.0f} s, {STREAMS} streams: {tally.finished} finished ({tally.slow} read slowly), "
              f"{tally.cancelled} cancelled, none lost; heap {samples[-1][1] / 2**20:.1f} MiB, "
              f"{growth_per_second(samples) * 60 / 2**20:+.2f} MiB a minute in the last quarter; time between messages: "
              f"median {gaps[len(gaps) // 2] * 1e3:.1f} ms, p99 {gaps[len(gaps) * 99 // 100] * 1e3:.1f} ms")


if __name__ == "__main__":
    unittest.main()
