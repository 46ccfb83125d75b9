"""Programs under bad files and bad flags: an exit code and a line that says why, in bounded time,
never a signal. Under low limits: they serve, or end with a reason and leave nothing."""

import concurrent.futures
import json
import os
import random
import re
import sys
import unittest

sys.path.insert(0, "tests/hostile")
import processes  # noqa: E402

BAD_FILES = "tests/golden/bad-gguf/"
VALUES = ("", "-1", "1e308", "9" * 309, b"\xff\xfe")
# Without these the programs would start to serve or to wait.
NOWHERE = {
    processes.COORDINATOR: ["--model", "/no/such.gguf", "--listen", "127.0.0.1:0"],
    processes.WORKER: ["--coordinator", "127.0.0.1:1", "--token-file", "/no/such"],
}
CLIENT_COMMANDS = {
    "generate": ["--server", "127.0.0.1:1", "--prompt", "x"],
    "info": ["/no/such.gguf"],
    "tokenize": ["--model", "/no/such.gguf"],
    "detokenize": ["--model", "/no/such.gguf"],
    "wait": ["--server", "127.0.0.1:1", "--timeout", "1ms"],
    "stats": ["--server", "127.0.0.1:1"],
    "trace": ["--server", "127.0.0.1:1", "--output", "-"],
    "bench": ["--model", "/no/such.gguf"],
}


class ProgramsTest(unittest.TestCase):

    def check_all(self, commands):
        """Each command ends with 1 or 2, and its last line on stderr begins with its name."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = pool.map(lambda command: processes.run(*command, input=b""), commands)
            for command, (code, _, err) in zip(commands, results):
                with self.subTest(command=command):
                    self.assertIn(code, (1, 2), err)
                    name = os.path.basename(command[0])
                    self.assertTrue((err.splitlines() or [""])[-1].startswith(name + ": "), err)

    def test_bad_files(self):
        with open(BAD_FILES + "index.json", encoding="utf-8") as file:
            index = json.load(file)["files"]
        for entry in index:
            path = BAD_FILES + entry["file"]
            with self.subTest(file=entry["file"]):
                code, out, err = processes.run(processes.TANDEM, "info", path)
                self.assertIn(code, (0, 1), err)
                self.assertEqual((code == 0, len(err.splitlines())), (bool(out), code), err)
                if entry["expect"] != "either":
                    self.assertEqual(code == 0, entry["expect"] == "accept", err)
                if code == 1:  # the server refuses what info refuses, in the same words
                    refused, _, reason = processes.run(processes.COORDINATOR, "--model", path,
                                                       "--listen", "127.0.0.1:0")
                    self.assertEqual(refused, 1, reason)
                    words = err.split(": ", 2)[2].removeprefix("cannot be served: ")
                    self.assertIn(words, reason)

    def test_files_with_flipped_bytes(self):
        with open(BAD_FILES + "ok-base.gguf", "rb") as file:
            good = file.read()
        noise = random.Random(12)
        path = os.path.join(os.environ["TEST_TMPDIR"], "flipped.gguf")
        for _ in range(60):
            bad = bytearray(good)
            for _ in range(noise.randrange(1, 9)):
                bad[noise.randrange(4096)] = noise.randrange(256)
            with open(path, "wb") as file:
                file.write(bad)
            code, _, err = processes.run(processes.TANDEM, "info", path)
            self.assertIn(code, (0, 1), err)
            self.assertEqual(len(err.splitlines()), code, err)

    def test_bad_flags(self):
        commands = []
        for program, nowhere in [
                *NOWHERE.items(),
                *(((processes.TANDEM, name), rest) for name, rest in CLIENT_COMMANDS.items())]:
            program = [program] if isinstance(program, str) else list(program)
            _, text, _ = processes.run(*program, "--help")
            for flag in re.findall(r"^  (?:-\w,)?(--[a-z-]+)[ =]", text, re.MULTILINE):
                if flag not in ("--help", "--version"):
                    commands += [[*program, *nowhere, flag, value] for value in VALUES]
            commands += [[*program, "--bogus"], [*program, *nowhere, "--config", "/no/such"]]
        self.assertGreater(len(commands), 300)
        self.check_all(commands)

    def test_more_connections_than_descriptors(self):
        server = processes.Server(prefix=["bash", "-c", 'ulimit -n 256 && exec "$@"', "bash"])
        self.addCleanup(server.kill)
        self.assertTrue(server.wait_ready(), server.log())
        normal = server.answer()
        server.wait_quiet()
        idle = processes.num_descriptors(server.process.pid)
        for connection in [processes.connect(server.port) for _ in range(261)]:
            connection.close()

        def answers():
            try:
                return server.answer() == normal
            except AssertionError:
                return False  # refused as long as closed connections count

        processes.until(answers, "the port is deaf")
        processes.until(lambda: processes.num_descriptors(server.process.pid) == idle,
                        "descriptors are not back")
        self.assertEqual(server.stop(), 0, server.log())

    def test_low_limits(self):
        for limit in ("-n 8", "-n 16", "-n 32", "-n 64", "-v 100000", "-v 400000"):
            with self.subTest(limit=limit):
                server = processes.Server(
                    prefix=["bash", "-c", f'ulimit {limit} && exec "$@"', "bash"])
                try:
                    if server.wait_ready():  # enough after all
                        server.answer()
                        self.assertEqual(server.stop(), 0, server.log())
                    else:
                        code = server.process.wait(processes.PATIENCE_S)
                        self.assertNotEqual(code, 0, server.log())
                        self.assertTrue(server.log().strip(), "it ended without a word")
                finally:
                    server.kill()


if __name__ == "__main__":
    unittest.main()
