"""LoRA adapters over HTTP: each is a model of its own to clients."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 20}
DEMO = "Tandem demo"


class LoraTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.adapter = os.path.join(os.environ["TEST_TMPDIR"], "adapter.gguf")
        subprocess.run([sys.executable, "tools/make_random_adapter.py", "--model", "models/demo.gguf", "--rank", "4",
                        "--strength", "1", "--out", cls.adapter], check=True)
        cls.coordinator = programs.start_coordinator("--lora-modules", f"tales={cls.adapter}")
        cls.addClassCleanup(cls.coordinator.kill)
        cls.gateway = programs.start_gateway("--server", cls.coordinator.address)
        cls.addClassCleanup(cls.gateway.kill)
        programs.until(lambda: programs.call(cls.gateway.address, "/health")[0] == 200,
                       "the gateway is not healthy")

    def post(self, path, body, status=200):
        found, _, content = programs.call(self.gateway.address, path, body)
        self.assertEqual(found, status, content)
        return content

    def test_adapters_are_listed_with_their_model(self):
        _, _, models = programs.call(self.gateway.address, "/v1/models")
        self.assertEqual([(one["id"], one["parent"], one["root"]) for one in models["data"]],
                         [(DEMO, None, DEMO), ("tales", DEMO, DEMO)])

    def test_completions_chats_and_embeddings_of_an_adapter(self):
        chat = {"messages": [{"role": "user", "content": "Story:"}], "temperature": 0, "max_tokens": 20}
        for path, body, part in (("/v1/completions", STORY, "choices"), ("/v1/chat/completions", chat, "choices"),
                                 ("/v1/embeddings", {"input": "Story:"}, "data")):
            with self.subTest(path):
                plain = self.post(path, body)
                named = self.post(path, {**body, "model": DEMO})
                adapted = self.post(path, {**body, "model": "tales"})
                self.assertEqual((plain["model"], named["model"], adapted["model"]), (DEMO, DEMO, "tales"))
                self.assertEqual(plain[part], named[part])
                self.assertNotEqual(plain[part], adapted[part])
                self.assertEqual(self.post(path, {**body, "model": "tales"})[part], adapted[part])

    def test_an_unknown_model_is_refused_with_all_names(self):
        error = self.post("/v1/completions", {**STORY, "model": "none"}, 404)["error"]
        self.assertEqual(error["message"], f"the model 'none' does not exist; served: '{DEMO}', 'tales'")

    def test_tokenize_takes_an_adapters_name(self):
        self.assertEqual(self.post("/tokenize", {"prompt": "a", "model": "tales"})["tokens"],
                         self.post("/tokenize", {"prompt": "a"})["tokens"])

    def test_a_broken_adapter_is_refused_at_the_start(self):
        with open(self.adapter, "rb") as file:
            broken = file.read().replace(b"\4\0\0\0\0\0\0\0lora", b"\4\0\0\0\0\0\0\0aora", 1)
        path = self.adapter + ".broken"
        with open(path, "wb") as file:
            file.write(broken)
        with self.assertRaisesRegex(AssertionError, re.escape(
                f'{path}: adapter.type of a LoRA adapter for this model must be "lora", found "aora"')):
            programs.start_coordinator("--lora-modules", f"x={path}")


if __name__ == "__main__":
    unittest.main()
