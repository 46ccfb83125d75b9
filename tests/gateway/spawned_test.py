"""The gateway that a coordinator starts itself, by --http-listen."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 5}


def install(name, *paths):
    """These programs side by side in a folder, as in bin/."""
    folder = os.path.join(os.environ["TEST_TMPDIR"], name)
    os.makedirs(folder, exist_ok=True)
    for path in paths:
        shutil.copy(path, folder)
    return folder


def start(folder, *flags):
    return programs.Program(
        os.path.join(folder, "tandem_coordinator"), "--model", "models/demo.gguf", "--listen",
        "127.0.0.1:0", "--worker-binary", "worker/tandem_worker", "--threads-per-worker", "1", *flags)


def gateways(coordinator):
    """The addresses that its gateways have told, one after the other."""
    return re.findall(r"HTTP on (127\.0\.0\.1:\d+)", coordinator.log())


def pid_of(coordinator):
    """The gateway's; None while there is none."""
    tasks = f"/proc/{coordinator.process.pid}/task"
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/children", encoding="ascii") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline", encoding="utf-8") as command:
                    if "/tandem_gateway\0" in command.read():
                        return int(child)
    return None


def scrape(address):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"http://{address}/metrics", timeout=programs.PATIENCE_S) as answer:
        return answer.read().decode()


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class SpawnedTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = install("bin", "coordinator/tandem_coordinator", programs.GATEWAY)

    def start(self):
        coordinator = start(self.folder, "--http-listen", "127.0.0.1:0")
        self.addCleanup(coordinator.kill)
        # It says that it is ready when both are.
        self.assertEqual(len(gateways(coordinator)), 1)
        self.assertEqual(programs.call(gateways(coordinator)[0], "/health")[0], 200)
        return coordinator

    def test_a_chat_by_the_demo_models_own_template(self):
        """Messages stand below each other, the last one to be continued: the prompt of a completion."""
        address = gateways(self.start())[0]
        story = programs.call(address, "/v1/completions", STORY)[2]["choices"][0]["text"]
        asked = [{"role": "user", "content": "Story:"}]
        told = programs.call(address, "/v1/chat/completions", {**STORY, "prompt": None, "messages": asked})
        self.assertEqual((told[0], told[2]["choices"][0]["message"]["content"]), (200, story))
        both = [*asked, {"role": "assistant", "content": story}, {"role": "user", "content": "Question:"}]
        chat = programs.call(address, "/tokenize", {"messages": both})[2]["tokens"]
        self.assertEqual(chat, programs.call(address, "/tokenize", {"prompt": f"Story:\n{story}\nQuestion:"})[2]["tokens"])

    def wait_healthy(self, coordinator, count):
        programs.until(lambda: len(gateways(coordinator)) == count, "there is no gateway")
        programs.until(lambda: programs.call(gateways(coordinator)[-1], "/health")[0] == 200,
                       "the gateway is not healthy")

    def test_it_serves_and_ends_with_the_coordinator(self):
        coordinator = self.start()
        status, _, answer = programs.call(gateways(coordinator)[0], "/v1/completions", STORY)
        self.assertEqual((status, answer["usage"]["completion_tokens"]), (200, 5))
        pid = pid_of(coordinator)
        self.assertTrue(runs(pid))
        self.assertEqual(coordinator.stop(), 0, coordinator.log())
        self.assertFalse(runs(pid))

    def test_a_stream_finishes_before_they_end(self):
        coordinator = self.start()
        stream = programs.open_stream(gateways(coordinator)[0], {
            "prompt": "Story:", "max_tokens": 600, "ignore_eos": True})
        coordinator.process.terminate()
        self.assertTrue(stream.response.read().endswith(b"data: [DONE]\n\n"))
        stream.close()
        self.assertEqual(coordinator.process.wait(programs.PATIENCE_S), 0, coordinator.log())

    def test_it_is_started_again(self):
        coordinator = self.start()
        os.kill(pid_of(coordinator), signal.SIGKILL)
        self.wait_healthy(coordinator, 2)
        self.assertIn("it is started again in 500ms", coordinator.log())
        self.assertEqual(
            programs.call(gateways(coordinator)[1], "/v1/completions", STORY)[0], 200)

    def test_one_that_hangs_is_replaced(self):
        coordinator = start(self.folder, "--http-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
        self.addCleanup(coordinator.kill)
        metrics = re.search(r"status page on http://(127\.0\.0\.1:\d+)", coordinator.log()).group(1)

        def is_up():
            return "\ntandem_http_gateway_up 1\n" in scrape(metrics)
        programs.until(is_up, "the gateway is not up")
        pid = pid_of(coordinator)
        os.kill(pid, signal.SIGSTOP)
        self.wait_healthy(coordinator, 2)
        self.assertFalse(runs(pid))
        self.assertIn("tandem_gateway: it gave no sign of life for 10s and is killed; it is started again in 500ms",
                      coordinator.log())
        programs.until(is_up, "the next gateway is not up")
        self.assertEqual(programs.call(gateways(coordinator)[1], "/v1/completions", STORY)[0], 200)
        self.assertEqual(coordinator.stop(), 0, coordinator.log())

    def test_it_ends_when_the_coordinator_is_killed(self):
        coordinator = self.start()
        pid = pid_of(coordinator)
        coordinator.kill()
        programs.until(lambda: not runs(pid), "the gateway still runs")

    def test_its_log_is_json_if_the_coordinators_is(self):
        coordinator = start(self.folder, "--http-listen", "127.0.0.1:0", "--log-format", "json")
        self.addCleanup(coordinator.kill)
        self.wait_healthy(coordinator, 1)
        self.assertEqual(coordinator.stop(), 0, coordinator.log())
        lines = [json.loads(line) for line in coordinator.log().splitlines()]
        self.assertTrue(any("HTTP on " in line["message"] for line in lines), coordinator.log())

    def check_refused(self, folder, http_listen, last_line):
        done = subprocess.run(
            [os.path.join(folder, "tandem_coordinator"), "--model", "models/demo.gguf", "--listen",
             "127.0.0.1:0", "--http-listen", http_listen], capture_output=True, text=True,
            timeout=programs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], last_line)
        return done.stderr

    def test_what_is_missing_is_an_error_at_once(self):
        alone = install("alone", "coordinator/tandem_coordinator")
        self.check_refused(alone, "127.0.0.1:0",
                           f"^tandem_coordinator: --http-listen: there is no tandem_gateway in {alone}")

    def test_an_address_in_use_is_an_error_at_once(self):
        coordinator = self.start()
        text = self.check_refused(self.folder, coordinator.address,
                                  "--http-listen: tandem_gateway exited with code 1, its reason is")
        self.assertIn(f"tandem_gateway: --listen {coordinator.address}: Address already in use", text)


if __name__ == "__main__":
    unittest.main()
