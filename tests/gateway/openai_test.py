"""The gateway as OpenAI's own Python package uses it. Skipped where the package is not installed."""

import importlib.util
import json
import os
import struct
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib",
                        f"python3.{sys.version_info[1]}", "site-packages")
sys.path.append(PACKAGES)
TEMPLATE = programs.TEMPLATE + "{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}"
TOOL = {"type": "function", "function": {
    "name": "weather", "parameters": {"type": "object", "properties": {"city": {}}}}}


@unittest.skipUnless(importlib.util.find_spec("openai"), "needs openai of PyPI")
class OpenAiTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        import openai
        cls.openai = openai
        cls.coordinator = programs.start_coordinator()
        cls.addClassCleanup(cls.coordinator.kill)
        cls.gateway = programs.start_gateway("--server", cls.coordinator.address,
                                             template=TEMPLATE)
        cls.addClassCleanup(cls.gateway.kill)
        programs.until(lambda: programs.call(cls.gateway.address, "/health")[0] == 200,
                       "the gateway is not healthy")
        cls.client = openai.OpenAI(base_url=f"http://{cls.gateway.address}/v1", api_key="none",
                                   max_retries=0, timeout=programs.PATIENCE_S)
        cls.chat = {"model": "Tandem demo", "messages": [{"role": "user", "content": "Story:"}],
                    "max_completion_tokens": 10, "temperature": 0}

    def test_models(self):
        self.assertEqual([one.id for one in self.client.models.list()], ["Tandem demo"])

    def test_chat_whole_and_streamed(self):
        whole = self.client.chat.completions.create(**self.chat)
        stream = self.client.chat.completions.create(
            **self.chat, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual("".join(one.choices[0].delta.content or "" for one in chunks[:-1]),
                         whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_choices_and_logprobs(self):
        answer = self.client.chat.completions.create(
            **{**self.chat, "temperature": 1}, n=3, seed=1, logprobs=True, top_logprobs=2)
        self.assertEqual(len({one.message.content for one in answer.choices}), 3)
        self.assertEqual(len(answer.choices[2].logprobs.content), 10)

    def test_completions(self):
        answer = self.client.completions.create(model="Tandem demo", prompt=["Story:", "A"],
                                                max_tokens=3, echo=True, logprobs=1)
        self.assertEqual(len(answer.choices), 2)
        self.assertTrue(answer.choices[0].text.startswith("Story:"))

    def test_embeddings(self):
        texts = ["Story:", "A cat sat", "Story:"]
        # The package asks for base64 and decodes it; a list says otherwise.
        answer = self.client.embeddings.create(model="Tandem demo", input=texts)
        plain = self.client.embeddings.create(model="Tandem demo", input=texts,
                                              encoding_format="float")
        self.assertEqual([one.index for one in answer.data], [0, 1, 2])
        for coded, listed in zip(answer.data, plain.data, strict=True):
            size = f"<{len(listed.embedding)}f"  # a list has the digits of 32-bit floats
            self.assertEqual(struct.pack(size, *coded.embedding), struct.pack(size, *listed.embedding))
        self.assertEqual(answer.data[0].embedding, answer.data[2].embedding)
        self.assertNotEqual(answer.data[0].embedding, answer.data[1].embedding)
        for one in answer.data:
            self.assertAlmostEqual(sum(value * value for value in one.embedding), 1, places=5)
        self.assertEqual(answer.usage.prompt_tokens, answer.usage.total_tokens)
        short = self.client.embeddings.create(model="Tandem demo", input="Story:", dimensions=8)
        self.assertEqual(len(short.data[0].embedding), 8)
        scale = answer.data[0].embedding[0] / short.data[0].embedding[0]
        for i, value in enumerate(short.data[0].embedding):
            self.assertAlmostEqual(value * scale, answer.data[0].embedding[i], places=5)

    def test_many_embeddings_in_several_calls(self):
        texts = [f"Text {i}" for i in range(300)]
        answer = self.client.embeddings.create(model="Tandem demo", input=texts)
        self.assertEqual([one.index for one in answer.data], list(range(300)))
        alone = self.client.embeddings.create(model="Tandem demo", input=texts[299])
        self.assertEqual(alone.data[0].embedding, answer.data[299].embedding)

    def test_embeddings_of_ids_and_refusals(self):
        one = self.client.embeddings.create(model="Tandem demo", input=[5, 6, 7])
        two = self.client.embeddings.create(model="Tandem demo", input=[[5, 6, 7], [8]])
        self.assertEqual(one.data[0].embedding, two.data[0].embedding)
        self.assertEqual(two.usage.prompt_tokens, 4)
        for wrong, message in (({"input": ""}, "input must not be empty"),
                               ({"input": "x", "dimensions": 1 << 20}, "dimensions is 1048576"),
                               ({"input": [1 << 30]}, "the vocabulary has"),
                               ({"input": ["word " * 5000]}, "exceed the context")):
            with self.assertRaises(self.openai.BadRequestError) as caught:
                self.client.embeddings.create(model="Tandem demo", **wrong)
            self.assertIn(message, str(caught.exception))

    def test_tools_reach_the_template(self):
        without = self.client.chat.completions.create(**self.chat)
        answer = self.client.chat.completions.create(**self.chat, tools=[TOOL])
        self.assertGreater(answer.usage.prompt_tokens, without.usage.prompt_tokens + 20)

    def test_answers_have_the_form_that_is_asked_for(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
                  "properties": {"name": {"type": "string", "maxLength": 10},
                                 "age": {"type": "integer", "minimum": 1, "maximum": 99}}}
        chat = {**self.chat, "temperature": 1, "max_completion_tokens": 200}
        answer = self.client.chat.completions.create(**chat, n=4, seed=3, response_format={
            "type": "json_schema", "json_schema": {"name": "person", "schema": schema}})
        for choice in answer.choices:
            self.assertEqual(choice.finish_reason, "stop")
            person = json.loads(choice.message.content)
            self.assertEqual(list(person), ["name", "age"])
            self.assertIn(person["age"], range(1, 100))
        answer = self.client.completions.create(
            model="Tandem demo", prompt="Story:", extra_body={"guided_choice": ["yes", "no"]})
        self.assertIn(answer.choices[0].text, ("yes", "no"))

    def test_calls_can_be_forced(self):
        tool = {"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object", "required": ["city"],
            "properties": {"city": {"type": "string", "maxLength": 8}}}}}
        chat = {**self.chat, "max_completion_tokens": 400, "temperature": 1, "seed": 5}
        named = {"type": "function", "function": {"name": "weather"}}
        for choice in (named, "required"):
            answer = self.client.chat.completions.create(**chat, tools=[tool], tool_choice=choice,
                                                         parallel_tool_calls=False)
            call, = answer.choices[0].message.tool_calls
            self.assertEqual(call.function.name, "weather")
            self.assertEqual(list(json.loads(call.function.arguments)), ["city"])

    def test_errors(self):
        with self.assertRaises(self.openai.BadRequestError) as caught:
            self.client.chat.completions.create(**self.chat, top_p=7)
        self.assertEqual(caught.exception.param, "top_p")
        with self.assertRaises(self.openai.NotFoundError):
            self.client.chat.completions.create(**{**self.chat, "model": "none"})


if __name__ == "__main__":
    unittest.main()
