"""Bodies of requests: what is read, refused and ignored."""

import pathlib
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_request, completion_request, embedding_request, errors, limits, sampling  # noqa: E402

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


class RequestTest(unittest.TestCase):

    def check_refused(self, read, body, expected, param=None):
        with self.assertRaises(errors.ApiError) as caught:
            read(body)
        self.assertEqual((caught.exception.status, caught.exception.message), (400, expected))
        if param:
            self.assertEqual(caught.exception.param, param)

    def test_sampling_fields(self):
        params = completion_request.read({
            "prompt": "x", "temperature": 0, "top_p": 0.5, "top_k": 7, "min_p": 0.25,
            "max_tokens": 9, "min_tokens": 2, "seed": -1, "ignore_eos": True, "stop": "a",
            "stop_token_ids": [3], "logprobs": 2}).params
        self.assertEqual((params.temperature, params.top_p, params.top_k, params.min_p),
                         (0, 0.5, 7, 0.25))
        self.assertEqual((params.max_tokens, params.min_tokens, params.seed, params.ignore_eos),
                         (9, 2, 2**64 - 1, True))
        self.assertEqual((params.stop, params.stop_token_ids, params.logprobs), (["a"], [3], 2))

    def test_an_answer_goes_on_in_the_assistants_last_message_alone(self):
        def read(content="It", **fields):
            messages = [*CHAT["messages"], {"role": "assistant", "content": content, **fields.pop("last", {})}]
            request = chat_request.read({"messages": messages, "continue_final_message": True, **fields})
            return request.continues, request.add_generation_prompt
        self.assertEqual(read(), (True, False))
        self.assertEqual(read(add_generation_prompt=False), (True, False))
        self.assertEqual(read(continue_final_message=False), (False, True))
        self.check_refused(lambda one: read(**one), {"add_generation_prompt": True},
                           "continue_final_message and add_generation_prompt cannot both be true", "continue_final_message")
        needed = "continue_final_message needs a last message of the assistant, without tool_calls"
        call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
        self.check_refused(lambda one: read(**one), {"last": {"tool_calls": [call]}}, needed)
        self.check_refused(chat_request.read, {**CHAT, "continue_final_message": True}, needed)

    def test_a_message_is_one_short_line(self):
        self.check_refused(completion_request.read, {"prompt": "x", "a\nb\u2028": 1},
                           "a\\nb\\u2028 is not a field that this server knows", "a\nb\u2028")
        with self.assertRaises(errors.ApiError) as caught:
            completion_request.read({"prompt": "x", "n": 10**3000})
        self.assertEqual(len(caught.exception.message), errors.MAX_MESSAGE_CHARS)

    def test_embedding_inputs(self):
        for given, expected in (("x", ["x"]), ([5, 6], [[5, 6]]), (["x", [5]], ["x", [5]])):
            self.assertEqual(embedding_request.read({"input": given}).inputs, expected)
        request = embedding_request.read({
            "input": "x", "model": "m", "encoding_format": "base64", "dimensions": 3, "user": "u",
            "pooling": "cls", "normalize": False, "priority": 2, "add_special_tokens": False})
        self.assertEqual((request.model, request.base64), ("m", True))
        self.assertEqual((request.common.dimensions, request.common.pooling,
                          request.common.normalize, request.common.priority,
                          request.common.add_special_tokens), (3, 2, False, 2, False))
        kinds = "input must be a string, a list of token ids, or a list of either"
        for given, message in (
                (None, kinds), ([], kinds), ({}, kinds), (5, kinds), ([True], kinds),
                (["x", 5], kinds), ([[0.5]], kinds), ("", "input must not be empty"),
                (["x", ""], "input[1] must not be empty"), ([[5], []], "input[1] must not be empty"),
                (["x"] * 2049, "input has 2049 entries, at most 2048")):
            self.check_refused(embedding_request.read, {"input": given}, message)
        self.check_refused(embedding_request.read, {"input": "x", "encoding_format": "int8"},
                           'encoding_format must be "float" or "base64"', "encoding_format")
        self.check_refused(embedding_request.read, {"input": "x", "pooling": "rank"},
                           'pooling must be "mean", "cls" or "last"', "pooling")
        self.check_refused(embedding_request.read, {"input": "x", "other": 1},
                           "other is not a field that this server knows", "other")

    def test_embedding_batches(self):
        def sizes(inputs):
            request = embedding_request.read({"input": inputs, "dimensions": 2})
            calls = embedding_request.batches(request, "id")
            self.assertEqual([one.request_id for one in calls],
                             [f"id-{i}" for i in range(len(calls))])
            self.assertTrue(all(one.dimensions == 2 for one in calls))
            self.assertTrue(all(one.ByteSize() < 4 << 20 for one in calls))
            return [len(one.inputs) for one in calls]
        self.assertEqual(sizes(["x"] * 32), [32])
        self.assertEqual(sizes(["x"] * 70), [32, 32, 6])
        self.assertEqual(sizes(["x" * (1 << 20)] * 7), [3, 3, 1])
        self.assertEqual(sizes(["x", "y" * limits.MAX_PROMPT_BYTES, "z"]), [1, 1, 1])

    def test_limits_are_the_coordinators(self):
        limits = pathlib.Path("common/base/limits.h").read_text()
        self.assertIn(f" kMaxChoices = {sampling.MAX_CHOICES};", limits)
        self.assertIn(f" kMaxTopLogprobs = {sampling.MAX_TOP_LOGPROBS};", limits)

    def test_priority(self):
        for read, body in ((completion_request.read, {"prompt": "x"}), (chat_request.read, CHAT)):
            self.assertEqual(read({**body, "priority": -100}).priority, -100)
            self.assertEqual(read(body).priority, 0)
            self.check_refused(read, {**body, "priority": 101},
                               "priority is 101, it must be from -100 to 100", "priority")

    def test_what_changes_logits(self):
        params = completion_request.read({
            "prompt": "x", "frequency_penalty": 0.5, "presence_penalty": -1, "repetition_penalty": 1.25,
            "logit_bias": {"7": -100, "9": 0.5}, "bad_words": ["a", "b"], "stop": "c",
            "include_stop_str_in_output": True}).params
        self.assertEqual(
            (params.frequency_penalty, params.presence_penalty, params.repetition_penalty),
            (0.5, -1, 1.25))
        self.assertEqual(dict(params.logit_bias), {7: -100, 9: 0.5})
        self.assertEqual(params.bad_words, ["a", "b"])
        self.assertTrue(params.include_stop)
        for biases in ({"x": 1}, {"-1": 1}, {"7": "1"}, {"7": True}, {"2147483648": 1}, {"9" * 5000: 1},
                       {"07": 1}, {"7": 10**400}, {"7": float("inf")}):
            self.check_refused(completion_request.read, {"prompt": "x", "logit_bias": biases},
                               "logit_bias must be an object of token ids and numbers", "logit_bias")

    def test_too_many_biases(self):
        self.check_refused(completion_request.read,
                           {"prompt": "x", "logit_bias": {str(id): 1 for id in range(1025)}},
                           "logit_bias has 1025 entries, at most 1024", "logit_bias")

    def test_numbers_beyond_a_float(self):
        self.check_refused(completion_request.read, {"prompt": "x", "temperature": 10**400},
                           "temperature must be a finite number", "temperature")

    def test_samplers_by_the_names_of_the_api(self):
        wanted = {"typical_p": 0.5, "xtc_probability": 0.25, "xtc_threshold": 0.125, "dry_multiplier": 0.5,
                  "dry_base": 1.5, "dry_allowed_length": 3, "dry_penalty_last_n": 64, "penalty_window": 32,
                  "dry_sequence_breakers": ["a", "b"]}
        params = completion_request.read({"prompt": "x", **wanted}).params
        self.assertEqual({name: getattr(params, name) for name in wanted}, wanted)

    def test_speculation_may_be_forbidden(self):
        for read, body in ((completion_request.read, {"prompt": "x"}), (chat_request.read, CHAT)):
            self.assertFalse(read(body).params.HasField("speculation"))
            for allowed in (True, None):
                params = read({**body, "speculation": allowed}).params
                self.assertFalse(params.HasField("speculation"))
            params = read({**body, "speculation": False}).params
            self.assertTrue(params.HasField("speculation"))
            self.assertFalse(params.speculation)
            self.check_refused(read, {**body, "speculation": 0},
                               "speculation must be true or false, it is 0", "speculation")

    def test_defaults_are_the_coordinators_but_for_completions_max_tokens(self):
        params = completion_request.read({"prompt": "x", "top_p": None}).params
        self.assertEqual([field.name for field, _ in params.ListFields()], ["max_tokens",
                                                                           "ignore_eos"])
        self.assertEqual(params.max_tokens, 16)
        self.assertFalse(chat_request.read(CHAT).params.HasField("max_tokens"))

    def test_newer_name_of_max_tokens_wins(self):
        request = chat_request.read({**CHAT, "max_tokens": 5, "max_completion_tokens": 6})
        self.assertEqual(request.params.max_tokens, 6)

    def test_harmless_and_neutral_fields(self):
        completion_request.read({"prompt": "x", "user": "me", "best_of": 1, "logit_bias": {},
                                 "presence_penalty": 0.0, "suffix": None})
        chat_request.read({**CHAT, "store": False, "metadata": {"a": "b"}, "response_format":
                           {"type": "text"}, "tool_choice": "none", "frequency_penalty": 0})

    def test_what_changes_the_meaning_is_refused(self):
        self.check_refused(completion_request.read, {"prompt": "x", "best_of": 2},
                           "best_of is not supported: it must be absent or 1", "best_of")
        self.check_refused(completion_request.read, {"prompt": "x", "suffix": "y"},
                           'suffix is not supported: it must be absent or ""', "suffix")
        self.check_refused(chat_request.read, {**CHAT, "wibble": 1},
                           "wibble is not a field that this server knows", "wibble")

    def test_types(self):
        for field, value, problem in (
                ("temperature", "1", "must be a number, it is a string"),
                ("temperature", True, "must be a number, it is true"),
                ("top_k", 1.5, "must be an integer, it is 1.5"),
                ("top_k", 2**31, "is 2147483648, it must be from -2147483648 to 2147483647"),
                ("stop", [1], "must be a string or a list of strings"),
                ("stop_token_ids", ["a"], "must be a list of token ids"),
                ("stream", 1, "must be true or false, it is 1"),
                ("stream_options", {"include_usage": True}, "needs stream to be true"),
                ("n", 0, "is 0, it must be from 1 to 128"),
                ("logprobs", 21, "is 21, it must be from 0 to 20"),
                ("prompt", 5, "must be a string, a list of token ids, or a list of either"),
                ("prompt", [], "must be a string, a list of token ids, or a list of either"),
                ("prompt", ["a", 1], "must be a string, a list of token ids, or a list of either")):
            self.check_refused(completion_request.read, {"prompt": "x", field: value},
                               f"{field} {problem}", field)
        self.check_refused(completion_request.read, [], "the body must be a JSON object, it is []")

    def test_prompts(self):
        for prompt, expected in (("a", ["a"]), ([1, 2], [[1, 2]]), (["a", "b"], ["a", "b"]),
                                 ([[1], [2]], [[1], [2]]), (["a", [2]], ["a", [2]])):
            self.assertEqual(completion_request.read({"prompt": prompt}).prompts, expected)
        self.check_refused(completion_request.read, {"prompt": ["a"] * 3, "n": 128},
                           "3 prompts with n 128 are 384 answers, at most 256")

    def test_messages(self):
        messages = chat_request.read({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"},
                                         {"type": "text", "text": "b"}], "name": "n"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        ]}).messages
        self.assertEqual(messages[0], {"role": "user", "content": "a\nb", "name": "n"})
        self.assertEqual(messages[1]["content"], "")
        self.assertEqual(messages[1]["tool_calls"][0]["function"]["arguments"], {"x": 1})

    def test_a_past_call_that_was_cut_has_no_arguments(self):
        for arguments in ('{"city": "Z', "null", "[1]", "", None, 5):
            calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}]
            [message] = chat_request.read({"messages": [{"role": "assistant", "tool_calls": calls}]}).messages
            self.assertEqual(message["tool_calls"][0]["function"]["arguments"], {}, arguments)

    def test_one_call_if_the_model_has_no_more(self):
        request = chat_request.read({"messages": [{"role": "user", "content": "x"}], "tool_choice": "required",
                                     "tools": [{"type": "function", "function": {"name": "f"}}]})
        self.assertNotIn("maxItems", request.params.json_schema)
        request.allow_one_call()
        self.assertTrue(request.one_call)
        self.assertIn('"maxItems":1', request.params.json_schema)

    def test_bad_messages(self):
        for message, problem in (
                ({"content": "x"}, "messages[0].role is missing"),
                ("x", "messages[0] must be a JSON object, it is a string"),
                ({"role": "user", "content": 5}, "messages[0].content must be a string or a list of "
                 "parts"),
                ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content may have "
                 "text parts only: this server reads no images, audio or files"),
                ({"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]},
                 "messages[0].tool_calls[0].function must be an object with a name")):
            self.check_refused(chat_request.read, {"messages": [message]}, problem)
        self.check_refused(chat_request.read, {}, "messages must be a list of at least one message")

    def test_seeds_of_choices(self):
        params = sampling.for_choice(completion_request.read({"prompt": "x", "seed": 7}).params, 0)
        self.assertEqual(params.seed, 7)
        seeds = {sampling.for_choice(params, i).seed for i in range(128)}
        self.assertEqual(len(seeds), 128)
        params.ClearField("seed")
        self.assertFalse(sampling.for_choice(params, 1).HasField("seed"))


if __name__ == "__main__":
    unittest.main()
