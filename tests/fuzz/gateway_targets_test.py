"""Drives the gateway's targets in the test suite: their seeds, corpus/TARGET, and mutations of both, the same each run."""

import os
import random
import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/fuzz"]
from gateway_targets import TARGETS  # noqa: E402

NUM_MUTATIONS = 3000


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        action = rng.randrange(3)
        if action == 0:
            data[at:at + rng.randint(1, 8)] = b""
        elif action == 1:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))
        elif data:
            begin = rng.randrange(len(data))
            data[at:at] = data[begin:begin + rng.randint(1, 32)]
    return bytes(data)


class GatewayTargetsTest(unittest.TestCase):

    def drive(self, name):
        check, inputs = TARGETS[name]
        inputs = list(inputs)
        folder = os.path.join("tests/fuzz/corpus", name)
        for file_name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, file_name), "rb") as file:
                inputs.append(file.read())
        for data in inputs:
            check(data)
        rng = random.Random(1)
        for _ in range(NUM_MUTATIONS):
            check(mutated(rng.choice(inputs), rng))

    def test_http_requests(self):
        self.drive("http_requests")

    def test_chat_templates(self):
        self.drive("chat_templates")

    def test_tool_calls(self):
        self.drive("tool_calls")


if __name__ == "__main__":
    unittest.main()
