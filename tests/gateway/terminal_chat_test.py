"""`tandem chat` with a real coordinator, its input from a pipe."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

# One line per turn, so that the answers show what the model was told.
TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ message.content }}\n{% endfor %}Story:")


class TerminalChatTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.coordinator = programs.start_coordinator()
        cls.addClassCleanup(cls.coordinator.kill)
        cls.saved = os.path.join(os.environ["TEST_TMPDIR"], "saved.json")
        cls.folder = os.path.join(os.environ["TEST_TMPDIR"], "bin")
        os.makedirs(cls.folder)
        for program in ("client/tandem", "gateway/tandem_chat"):
            shutil.copy(program, cls.folder)

    def chat(self, text, *flags, code=0, template=TEMPLATE):
        path = os.path.join(os.environ["TEST_TMPDIR"], "chat-template")
        with open(path, "w", encoding="utf-8") as file:
            file.write(template)
        done = subprocess.run(
            [f"{self.folder}/tandem", "chat", "--server", self.coordinator.address, "--chat-template", path,
             "--temperature", "0", "--max-tokens", "8", *flags], input=text, capture_output=True,
            text=True, timeout=programs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def messages(self):
        with open(self.saved, encoding="utf-8") as file:
            return [(one["role"], one["content"]) for one in json.load(file)["messages"]]

    def test_answers_go_on_from_what_was_said(self):
        out, _ = self.chat(f"one\ntwo\n/save {self.saved}\n", "--system", "Be kind.")
        messages = self.messages()
        self.assertEqual([role for role, _ in messages],
                         ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual([messages[i][1] for i in (0, 1, 3)], ["Be kind.", "one", "two"])
        self.assertEqual(out.rstrip("\n"), f"{messages[2][1]}\n{messages[4][1]}".rstrip("\n"))
        self.assertTrue(messages[2][1])

    def test_reset_and_system(self):
        self.chat(f"one\n/reset\ntwo\n/save {self.saved}\n", "--system", "Be kind.")
        self.assertEqual([role for role, _ in self.messages()], ["system", "user", "assistant"])
        self.chat(f"one\n/system Rhyme.\n/save {self.saved}\n/quit\nnever", "--system", "Be kind.")
        self.assertEqual(self.messages(), [("system", "Rhyme.")])

    def test_errors_are_one_line(self):
        _, err = self.chat("one\n", code=1, template="{{ raise_exception('no') }}")
        self.assertEqual(err, "tandem_chat: the chat template refuses this conversation: no\n")
        _, err = self.chat("one\n", "--top-p", "7", code=1)
        self.assertRegex(err, r"^tandem_chat: sampling\.top_p is 7[^\n]*\n$")
        _, err = self.chat("one\n", "--server", "127.0.0.1:1", code=1)
        self.assertRegex(err, r"^tandem_chat: [^\n]*\n$")

    def test_flags_are_the_programs_own(self):
        done = subprocess.run([f"{self.folder}/tandem", "chat", "--help"], capture_output=True, text=True, check=True)
        self.assertIn("--chat-template FILE", done.stdout)
        done = subprocess.run([f"{self.folder}/tandem", "chat", "--nonsense"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unrecognized arguments: --nonsense", done.stderr)

    def test_without_the_program_it_says_what_is_missing(self):
        alone = os.path.join(self.folder, "alone")
        os.makedirs(alone)
        shutil.copy("client/tandem", alone)
        done = subprocess.run([f"{alone}/tandem", "chat"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^tandem: \S+/alone/tandem_chat: No such file or directory \([^\n]*\)\n$")
        os.mkdir(f"{alone}/tandem_chat")  # which no user may run, root included
        done = subprocess.run([f"{alone}/tandem", "chat"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^tandem: \S+/alone/tandem_chat: Permission denied\n$")

    def of_gpt_oss(self, *answers):
        """(stdout without its empty lines, stderr, prompts) of a question for each of these answers."""
        server = ScriptedServer("{{ messages | map(attribute='content') | join(' ') }}{# tools, <|channel|> and <|message|> #}")
        self.addCleanup(server.stop)
        server.answers = list(answers)
        questions = "".join(f"Q{i}\n" for i in range(len(answers)))
        done = subprocess.run([f"{self.folder}/tandem", "chat", "--server", server.address], input=questions,
                              capture_output=True, text=True, timeout=programs.PATIENCE_S, check=True)
        return done.stdout.strip("\n"), done.stderr, server.prompts

    def test_of_gpt_oss_what_is_for_the_user(self):
        out, err, prompts = self.of_gpt_oss(
            "<|channel|>analysis<|message|>Well.<|end|><|start|>assistant<|channel|>final<|message|>3 <", "")
        self.assertEqual((out, err, prompts), ("3 <", "", ["Q0", "Q0 3 < Q1"]))

    def test_thoughts_are_not_what_it_says(self):
        server = ScriptedServer("{{ messages | map(attribute='content') | join(' ') }}{# </think> #}")
        self.addCleanup(server.stop)
        server.answers = ["<think>\nWell.\n</think>\n\n3 <", "4"]
        done = subprocess.run([f"{self.folder}/tandem", "chat", "--server", server.address], input="Q0\nQ1\n",
                              capture_output=True, text=True, timeout=programs.PATIENCE_S, check=True)
        self.assertEqual((done.stdout.split(), done.stderr, server.prompts), (["3", "<", "4"], "", ["Q0", "Q0 3 < Q1"]))

    def test_of_gpt_oss_only_a_call(self):
        out, err, prompts = self.of_gpt_oss("<|channel|>commentary to=functions.f<|message|>{}<|call|>", "Hello.")
        self.assertRegex(err, r"^tandem_chat: the model only called a tool[^\n]*\n$")
        self.assertEqual((out, prompts), ("Hello.", ["Q0", "Q1"]))

    def test_unknown_commands_give_help(self):
        out, _ = self.chat("/wibble\n/save\n")
        self.assertEqual(out.count("/reset"), 2)


if __name__ == "__main__":
    unittest.main()
