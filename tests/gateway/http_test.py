"""The gateway in front of a real coordinator with the demo model."""

import base64
import concurrent.futures
import http.client
import json
import socket
import struct
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 20}
CHAT = {"messages": [{"role": "user", "content": "Story:"}], "temperature": 0, "max_tokens": 20}


class HttpTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.coordinator = programs.start_coordinator("--max-num-seqs", "64")
        cls.addClassCleanup(cls.coordinator.kill)
        cls.gateway = programs.start_gateway("--server", cls.coordinator.address)
        cls.addClassCleanup(cls.gateway.kill)
        programs.until(lambda: programs.call(cls.gateway.address, "/health")[0] == 200,
                       "the gateway is not healthy")

    def tearDown(self):
        """Whatever a case did, the coordinator is idle afterwards."""
        programs.until(lambda: self.requests() == 0, "a request is left")

    def requests(self):
        stats = programs.stats(self.coordinator.address)
        return stats["tandem_num_requests_running"] + stats["tandem_num_requests_waiting"]

    def post(self, path, body, status=200):
        found, headers, content = programs.call(self.gateway.address, path, body)
        self.assertEqual(found, status, content)
        self.headers = headers
        return content

    def events(self, path, body):
        return programs.events(self.gateway.address, path, body)

    def check_error(self, path, body, status, pattern, **fields):
        error = self.post(path, body, status)["error"]
        self.assertRegex(error["message"], pattern)
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual({name: error[name] for name in fields}, fields)

    def test_a_priority_reaches_the_coordinator(self):
        self.assertEqual(self.post("/v1/completions", {**STORY, "priority": -3})["choices"],
                         self.post("/v1/completions", STORY)["choices"])

    def test_embeddings(self):
        answer = self.post("/v1/embeddings", {"input": ["Story:", [5, 6]], "pooling": "mean"})
        self.assertEqual([set(one) for one in answer["data"]],
                         2 * [{"object", "index", "embedding"}])
        self.assertEqual((answer["object"], answer["model"]), ("list", "Tandem demo"))
        first = answer["data"][0]["embedding"]
        self.assertAlmostEqual(sum(value * value for value in first), 1, places=5)
        coded = self.post("/v1/embeddings", {"input": "Story:", "pooling": "mean",
                                             "encoding_format": "base64"})
        data = base64.b64decode(coded["data"][0]["embedding"])
        self.assertEqual(data, struct.pack(f"<{len(first)}f", *first))
        last = self.post("/v1/embeddings", {"input": "Story:", "normalize": False})
        self.assertNotAlmostEqual(sum(x * x for x in last["data"][0]["embedding"]), 1, places=3)
        self.check_error("/v1/embeddings", {"input": "x", "dimensions": 0}, 400,
                         "^dimensions is 0, it must be from 1 to")
        self.check_error("/v1/embeddings", {"input": "x " * 3000}, 400, "exceed the context of 1024")

    def test_models_and_version(self):
        status, _, models = programs.call(self.gateway.address, "/v1/models")
        self.assertEqual((status, models["data"][0]["id"], models["data"][0]["max_model_len"]),
                         (200, "Tandem demo", 1024))
        [model] = models["data"]
        self.assertEqual(programs.call(self.gateway.address, "/v1/models/Tandem%20demo")[::2], (200, model))
        status, _, none = programs.call(self.gateway.address, "/v1/models/a/b")
        self.assertEqual((status, none["error"]["code"]), (404, "model_not_found"))
        status, _, version = programs.call(self.gateway.address, "/version")
        self.assertEqual((status, list(version)), (200, ["version"]))

    def test_a_completion_whole_and_streamed(self):
        whole = self.post("/v1/completions", STORY)
        self.assertEqual(whole["object"], "text_completion")
        self.assertEqual(whole["choices"][0]["finish_reason"], "length")
        self.assertEqual(whole["usage"]["completion_tokens"], 20)
        self.assertEqual(self.headers["x-request-id"], whole["id"])

        *chunks, last, done = self.events(
            "/v1/completions", {**STORY, "stream_options": {"include_usage": True}})
        self.assertEqual(done, "[DONE]")
        self.assertEqual("".join(one["choices"][0]["text"] for one in chunks),
                         whole["choices"][0]["text"])
        self.assertEqual([one["choices"][0]["finish_reason"] for one in chunks],
                         [None] * (len(chunks) - 1) + ["length"])
        self.assertTrue(all(one["usage"] is None for one in chunks))
        self.assertEqual((last["choices"], last["usage"]["completion_tokens"]), ([], 20))

    def test_a_chat_whole_and_streamed(self):
        text = self.post("/v1/completions", STORY)["choices"][0]["text"]
        whole = self.post("/v1/chat/completions", CHAT)
        self.assertEqual(whole["object"], "chat.completion")
        message = whole["choices"][0]["message"]
        self.assertEqual((message["role"], message["content"]), ("assistant", text))

        *chunks, done = self.events("/v1/chat/completions", CHAT)
        self.assertEqual(done, "[DONE]")
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual("".join(one["choices"][0]["delta"].get("content", "") for one in chunks),
                         message["content"])
        self.assertEqual((chunks[-1]["choices"][0]["delta"],
                          chunks[-1]["choices"][0]["finish_reason"]), ({}, "length"))
        self.assertEqual({one["object"] for one in chunks}, {"chat.completion.chunk"})
        self.assertNotIn("usage", chunks[0])

    def test_stop_strings(self):
        choice = self.post("/v1/completions", {**STORY, "stop": ["."]})["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["stop_reason"], "." in choice["text"]),
                         ("stop", ".", False))
        *_, last, done = self.events("/v1/chat/completions", {**CHAT, "stop": [" "]})
        self.assertEqual((last["choices"][0]["stop_reason"], done), (" ", "[DONE]"))

    def test_stop_ids(self):
        first = self.post("/tokenize", {"prompt": ".", "add_special_tokens": False})["tokens"][0]
        choice = self.post("/v1/completions", {**STORY, "stop_token_ids": [first]})["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", first))

    def test_several_choices_and_prompts(self):
        body = {"prompt": ["Story:", "Story: Paula"], "n": 3, "seed": 5, "max_tokens": 12}
        answer = self.post("/v1/completions", body)
        texts = [choice["text"] for choice in answer["choices"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(6)))
        self.assertEqual(len(set(texts)), 6, texts)
        self.assertEqual(answer["usage"]["completion_tokens"], 72)
        self.assertEqual([choice["text"] for choice in
                          self.post("/v1/completions", body)["choices"]], texts)
        alone = self.post("/v1/completions", {**body, "prompt": "Story:", "n": 1})
        self.assertEqual(alone["choices"][0]["text"], texts[0])

        streamed = [""] * 6
        *chunks, done = self.events("/v1/completions", body)
        for chunk in chunks:
            streamed[chunk["choices"][0]["index"]] += chunk["choices"][0]["text"]
        self.assertEqual((streamed, done), (texts, "[DONE]"))

    def test_chat_logprobs(self):
        answer = self.post("/v1/chat/completions", {**CHAT, "logprobs": True, "top_logprobs": 2})
        content = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 20)
        self.assertEqual(b"".join(bytes(one["bytes"]) for one in content).decode(),
                         answer["choices"][0]["message"]["content"])
        for one in content:
            self.assertEqual(len(one["top_logprobs"]), 2)
            self.assertEqual(one["top_logprobs"][0]["logprob"], one["logprob"])  # greedy
        *chunks, _ = self.events("/v1/chat/completions", {**CHAT, "logprobs": True})
        streamed = [one for chunk in chunks if chunk["choices"][0]["logprobs"]
                    for one in chunk["choices"][0]["logprobs"]["content"]]
        self.assertEqual([one["logprob"] for one in streamed], [one["logprob"] for one in content])

    def test_echo_with_logprobs_scores_a_prompt(self):
        answer = self.post("/v1/completions", {"prompt": "Story: It", "echo": True, "logprobs": 1,
                                               "max_tokens": 0})
        choice = answer["choices"][0]
        self.assertEqual((choice["text"], answer["usage"]["completion_tokens"]), ("Story: It", 0))
        probs = choice["logprobs"]
        self.assertEqual("".join(probs["tokens"]), "<|begin|>Story: It")
        self.assertEqual((probs["token_logprobs"][0], probs["top_logprobs"][0]), (None, None))
        self.assertTrue(all(value <= 0 for value in probs["token_logprobs"][1:]))
        self.assertEqual(probs["text_offset"][:3], [0, 9, 14])
        # By ids, with an answer and as a stream: the same probabilities of the prompt.
        ids = self.post("/tokenize", {"prompt": "Story: It"})["tokens"]
        *chunks, _ = self.events("/v1/completions", {
            "prompt": ids, "echo": True, "logprobs": 1, "max_tokens": 2, "temperature": 0})
        self.assertTrue("".join(one["choices"][0]["text"] for one in chunks).startswith("Story: It"))
        streamed = [value for one in chunks for value in one["choices"][0]["logprobs"]
                    ["token_logprobs"]]
        self.assertEqual(streamed[:-2], probs["token_logprobs"])

    def test_tokenize_and_detokenize(self):
        answer = self.post("/tokenize", {"prompt": "Story: a", "return_token_strs": True})
        self.assertEqual(answer["token_strs"], ["<|begin|>", "Story", ":", " a"])
        self.assertEqual((answer["count"], answer["max_model_len"]), (4, 1024))
        self.assertEqual(self.post("/detokenize", {"tokens": answer["tokens"]}),
                         {"prompt": "Story: a"})
        bare = self.post("/tokenize", {"prompt": "Story: a", "add_special_tokens": False})
        chat = self.post("/tokenize", {"messages": [{"role": "user", "content": "Story: a"}]})
        self.assertEqual(bare["tokens"], answer["tokens"][1:])
        self.assertEqual(chat["tokens"], answer["tokens"])  # the template writes BOS, once
        named = self.post("/tokenize", {"prompt": "<|begin|>Story: a", "add_special_tokens": False})
        self.assertEqual(named["tokens"], answer["tokens"])

    def test_errors(self):
        path = "/v1/completions"
        self.check_error(path, {**STORY, "top_p": 7}, 400, "top_p is 7", param="top_p",
                         type="invalid_request_error")
        self.check_error(path, {**STORY, "model": "none"}, 404, "'none' does not exist",
                         param="model", code="model_not_found")
        self.check_error(path, {**STORY, "prompt": "a " * 3000}, 400,
                         "^This model's maximum context length is 1024 tokens: prompt of 300. tokens and max_tokens 20 exceed",
                         code="context_length_exceeded")
        self.check_error(path, {**STORY, "prompt": "a" * 4200000}, 413, "a prompt has 4200000 bytes")
        self.check_error(path, {**STORY, "prompt": "a" * 300000, "n": 128}, 413,
                         "the prompts of all choices have 38400000 bytes")
        self.check_error(path, {**STORY, "stop": "a" * 5000000}, 413, "the request has 50000")
        self.check_error(path, {**STORY, "stop": "a" * 4000000, "n": 64}, 413,
                         "the parameters of all choices have 256")
        self.check_error("/tokenize", {"prompt": "a" * 4200000}, 413, "a prompt has")
        self.check_error(path, {**STORY, "stream": True, "top_p": 7}, 400, "top_p is 7")
        self.check_error("/v1/chat/completions", {**CHAT, "tools": [
            {"type": "function", "function": {"name": "f"}}]}, 400, "chat template has no tools")
        self.check_error("/v1/nothing", {}, 404, "Not Found")
        for body, pattern in ((b"{", "the body is not JSON: "),
                              (b'{"prompt": NaN}', "NaN is no JSON number"),
                              (b'{"prompt": "\\ud800"}', "not Unicode text"),
                              (b'{"prompt": "\xed\xa0\x80"}', "not Unicode text"),
                              ('{"prompt": "\\ud800"}'.encode("utf-16"), "not Unicode text"),
                              (b"[" * 100000, "nested too deeply"),
                              (b'{"prompt": "x", "seed": ' + b"9" * 5000 + b"}", "too many digits"),
                              (b'{"prompt": "x", "temperature": 1e999}', "finite"),
                              (b"\xff", "is not JSON"), (b"[]", "must be a JSON object")):
            with self.subTest(body=body[:40]):
                self.check_error(path, body, 400, pattern)
        self.check_error(path, b" " * (9 << 20), 413, "more than 8388608 bytes")

    def test_browsers_may_use_it_if_their_page_is_allowed(self):
        asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type"}
        status, headers, _ = programs.call(self.gateway.address, "/v1/completions", method="OPTIONS", headers=asked)
        self.assertEqual((status, headers["access-control-allow-origin"]), (405, None))
        gateway = programs.start_gateway("--server", self.coordinator.address, "--allowed-origin", "https://a.example")
        self.addCleanup(gateway.kill)
        programs.until(lambda: programs.call(gateway.address, "/health")[0] == 200, "the gateway is not healthy")
        status, headers, _ = programs.call(gateway.address, "/v1/completions", method="OPTIONS", headers=asked)
        self.assertEqual((status, headers["access-control-allow-origin"]), (200, "https://a.example"))
        self.assertIn("authorization", headers["access-control-allow-headers"])
        for origin, allowed in (("https://a.example", "https://a.example"), ("https://b.example", None)):
            _, headers, _ = programs.call(gateway.address, "/v1/models", headers={"Origin": origin})
            self.assertEqual(headers["access-control-allow-origin"], allowed)
        for site, origin, expected in (("cross-site", "https://a.example", 200), ("cross-site", "https://b.example", 403),
                                       ("same-site", None, 403), ("same-origin", "https://b.example", 200), ("none", None, 200)):
            headers = {"Sec-Fetch-Site": site, "Content-Type": "text/plain", **({"Origin": origin} if origin else {})}
            self.assertEqual(programs.call(gateway.address, "/v1/completions", STORY, headers=headers)[0], expected)

    def test_a_client_that_goes_frees_its_request(self):
        for stream in (True, False):
            connection = http.client.HTTPConnection(self.gateway.address,
                                                    timeout=programs.PATIENCE_S)
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "Story:", "n": 3, "max_tokens": 1000, "ignore_eos": True,
                 "stream": stream}))
            if stream:
                self.assertTrue(connection.getresponse().read(1))
            else:
                programs.until(lambda: self.requests() == 3, "the requests have not begun")
            connection.sock.close() if stream else connection.close()
            programs.until(lambda: self.requests() == 0, "the requests are still there")

    def test_bytes_that_are_no_http(self):
        post = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
        for data in (b"", b"\0" * 100, b"\x16\x03\x01\x02\x00", b"GET / HTTP/9\r\n\r\n",
                     b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20), post + b"A: b\r\n" * 100000,
                     post + b"Content-Length: -3\r\n\r\n", post + b"Content-Length: 99\r\n\r\n{",
                     post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(data=data[:60]):
                host, port = self.gateway.address.split(":")
                with socket.create_connection((host, int(port)), programs.PATIENCE_S) as connection:
                    try:
                        connection.sendall(data)
                        connection.shutdown(socket.SHUT_WR)
                        while part := connection.recv(1 << 16):
                            self.assertNotIn(b"HTTP/1.1 500", part)
                    except OSError as error:  # the gateway has ended it
                        self.assertNotIsInstance(error, TimeoutError)
        self.assertEqual(programs.call(self.gateway.address, "/health")[0], 200)
        self.assertFalse("Traceback" in self.gateway.log())

    def test_500_streams_at_once(self):
        body = {**STORY, "max_tokens": 8}
        expected = self.post("/v1/completions", body)["choices"][0]["text"]
        with concurrent.futures.ThreadPoolExecutor(500) as pool:
            streams = list(pool.map(lambda _: self.events("/v1/completions", body), range(500)))
        for *chunks, done in streams:
            self.assertEqual(("".join(one["choices"][0]["text"] for one in chunks), done),
                             (expected, "[DONE]"))


class TimeoutTest(unittest.TestCase):
    """A server that gives no request more than a millisecond."""

    def test_the_error_is_openais(self):
        coordinator = programs.start_coordinator("--request-timeout", "1ms")
        self.addCleanup(coordinator.kill)
        gateway = programs.start_gateway("--server", coordinator.address)
        self.addCleanup(gateway.kill)
        programs.until(lambda: programs.call(gateway.address, "/health")[0] == 200,
                       "the gateway is not healthy")
        body = {"prompt": "Story:", "max_tokens": 1000, "ignore_eos": True}
        status, _, content = programs.call(gateway.address, "/v1/completions", body)
        self.assertEqual(status, 504, content)
        self.assertRegex(content["error"]["message"], r"^the request's deadline .* has passed ")
        self.assertEqual((content["error"]["type"], content["error"]["code"]),
                         ("server_error", "timeout"))


if __name__ == "__main__":
    unittest.main()
