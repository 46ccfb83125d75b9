"""Bodies and chat templates changed at random, the same way on every run: each is read or refused in one line."""

import copy
import json
import random
import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/gateway"]
from bodies import CHAT, COMPLETION, EMBEDDING, FORCED, FORMED, MESSAGE, RESPONSE, TEMPLATE  # noqa: E402
from gateway import (chat_request, completion_request, conversation, embedding_request, message_request,  # noqa: E402
                     response_request)
from gateway.errors import ApiError  # noqa: E402
from gateway.http import parse_json  # noqa: E402
from gateway.template_environment import TemplateError, render  # noqa: E402

HOSTILE = [None, True, False, 0, -1, 1, 10**400, -2**63, 0.5, float("inf"), float("nan"), "", "a",
           "\x00", "\ud800", "é" * 1000, [], {}, [[]], [{}], {"": None}, {"a": {"b": []}}, [0] * 300,
           [-1], ["a"] * 300, {"type": "text", "text": 1}, {"role": "user"}]


def places(value, at=()):
    """The path to every value in a body."""
    yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from places(one, (*at, key))


def changed(body, rng):
    """One to three values replaced, dropped or put under another name."""
    body = copy.deepcopy(body)
    for _ in range(rng.randint(1, 3)):
        *path, last = rng.choice([one for one in places(body) if one])
        parent = body
        for key in path:
            parent = parent[key]
        action = rng.randrange(4)
        if action == 0:
            del parent[last]
        elif action == 1 and isinstance(parent, dict):
            parent[rng.choice(["", "x", "best_of", "suffix", "response_format", "n"])] = parent.pop(last)
        else:
            parent[last] = copy.deepcopy(rng.choice(HOSTILE))
        if not body:
            break
    return body


class MutationTest(unittest.TestCase):

    def check_bodies(self, read, body, times=5000):
        rng = random.Random(20240601)
        read(body)
        taken = refused = 0
        for _ in range(times):
            mutated = changed(body, rng)
            try:
                read(parse_json(json.dumps(mutated).encode()))
                taken += 1
            except ApiError as error:
                self.assertIn(error.status, (400, 413, 501), mutated)
                self.assertTrue(error.message and "\n" not in error.message, error.message)
                self.assertLess(len(error.message), 2000)
                json.dumps(error.message).encode()
                refused += 1
        self.assertGreater(taken, 100)
        self.assertGreater(refused, times // 5)

    def test_embeddings(self):
        self.check_bodies(lambda body: embedding_request.batches(embedding_request.read(body), "id"), EMBEDDING)

    def test_chats(self):
        self.check_bodies(lambda body: conversation.adapted(
            chat_request.read(body).messages, "System message must be at the beginning, single tool-calls at once, "
            "alphanumeric strings with length 9"), CHAT)

    def test_messages(self):
        self.check_bodies(message_request.read, MESSAGE)

    def test_responses(self):
        self.check_bodies(response_request.read, RESPONSE)

    def test_completions(self):
        self.check_bodies(completion_request.read, COMPLETION)

    def test_forms(self):
        for body in FORMED:
            self.check_bodies(completion_request.read, body, times=1000)

    def test_forced_calls(self):
        for body in FORCED:
            self.check_bodies(chat_request.read, body, times=1000)

    def test_numbers_that_no_answer_could_repeat(self):
        self.assertEqual(parse_json(b'{"a": 1e308}'), {"a": 1e308})
        for body in (b'{"a": 1e999}', b'[-1e999]', b'{"a": NaN}'):
            with self.assertRaises(ApiError) as caught:
                parse_json(body)
            self.assertEqual(caught.exception.status, 400)

    def test_what_is_no_object(self):
        for body in HOSTILE:
            for read in (chat_request.read, completion_request.read, message_request.read, response_request.read):
                with self.assertRaises(ApiError):
                    read(body)

    def test_templates(self):
        rng = random.Random(7)
        pieces = ["{{", "}}", "{%", "%}", "|", "(", ")", "[", "]", ".", "'", " if ", " else ", " endfor ",
                  "messages", "m", "__class__", "loop", "namespace", "raise_exception", "\n", "{#"]
        variables = {"messages": CHAT["messages"], "bos_token": "<s>", "add_generation_prompt": True}
        self.assertTrue(render(TEMPLATE, variables).startswith("<s>"))
        rendered = refused = 0
        for _ in range(2000):
            text = TEMPLATE
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(text))
                text = text[:at] + rng.choice(pieces) + text[at + rng.choice((0, 1, 3)):]
            try:
                self.assertIsInstance(render(text, variables), str)
                rendered += 1
            except TemplateError as error:
                self.assertNotIn("\n", str(error))
                self.assertLess(len(str(error)), 2000)
                refused += 1
        self.assertGreater(rendered, 100)
        self.assertGreater(refused, 100)


if __name__ == "__main__":
    unittest.main()
