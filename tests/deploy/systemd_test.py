"""The systemd unit: its settings agree with the programs, and the server tells systemd when it serves and when it stops."""

import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

UNIT = "deploy/systemd/tandem.service"
SETTINGS = "deploy/systemd/tandem.env"
COORDINATOR = "coordinator/tandem_coordinator"
DEADLINE_S = 120  # of every wait


def settings():
    """The variables of the unit's environment file."""
    with open(SETTINGS, encoding="utf-8") as text:
        lines = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def seconds(text):
    """A time as systemd and the flags write it."""
    number, unit = re.fullmatch(r"(\d+)(s|min)?", text).groups()
    return int(number) * (60 if unit == "min" else 1)


class UnitTest(unittest.TestCase):
    def setUp(self):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str
        unit.read(UNIT)
        self.service = unit["Service"]

    def test_variables_are_flags(self):
        help_text = subprocess.run([COORDINATOR, "--help"], capture_output=True, text=True, timeout=DEADLINE_S).stdout
        known = set(re.findall(r"--[a-z][a-z0-9-]*", help_text))
        for name in settings():
            self.assertIn("--" + name.removeprefix("TANDEM_").lower().replace("_", "-"), known)

    def test_a_drain_ends_before_the_unit_is_killed(self):
        drain = seconds(settings()["TANDEM_DRAIN_TIMEOUT"])
        self.assertGreaterEqual(seconds(self.service["TimeoutStopSec"]), drain + 5 + 5)

    def test_a_fetched_model_has_as_long_to_load_as_another(self):
        """What the server asks for while it fetches: StartTime of coordinator/startup/service_manager.h."""
        self.assertEqual(seconds(self.service["TimeoutStartSec"]), 20 * 60)

    def test_interfaces_can_be_listed(self):
        self.assertIn("AF_NETLINK", self.service["RestrictAddressFamilies"].split(), "getifaddrs asks by it")

    def test_it_has_no_privileges(self):
        self.assertEqual(self.service["User"], "tandem")
        self.assertEqual((self.service["NoNewPrivileges"], self.service["CapabilityBoundingSet"]), ("yes", ""))

    def test_systemd_accepts_it(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"]) as folder:
            path = os.path.join(folder, "tandem.service")
            with open(UNIT, encoding="utf-8") as unit, open(path, "w", encoding="utf-8") as copy:
                copy.write(unit.read().replace("/usr/bin/tandem_coordinator", os.path.abspath(COORDINATOR)))
            done = subprocess.run(["systemd-analyze", "--man=no", "verify", path], capture_output=True, text=True,
                                  timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_server_tells_when_it_serves_and_when_it_stops(self):
        folder = tempfile.mkdtemp(prefix="systemd")  # short: a socket's path is limited
        self.addCleanup(shutil.rmtree, folder)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.settimeout(DEADLINE_S)
        manager.bind(folder + "/notify")
        environment = {**os.environ, **settings(), "NOTIFY_SOCKET": folder + "/notify",
                       "TANDEM_MODEL": "models/demo.gguf", "TANDEM_LISTEN": "127.0.0.1:0",
                       "TANDEM_METRICS_LISTEN": "127.0.0.1:0",
                       "TANDEM_WORKER_BINARY": os.path.abspath("worker/tandem_worker")}
        server = subprocess.Popen([COORDINATOR], env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(manager.recv(100), b"READY=1")
        address = re.match(r"ready: listening on ([^,]+),", server.stdout.readline())[1]
        self.assertEqual(subprocess.run(["client/tandem", "wait", "--server", address, "--timeout", "60s"],
                                        timeout=DEADLINE_S).returncode, 0)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(manager.recv(100), b"STOPPING=1")
        self.assertEqual(server.wait(DEADLINE_S), 0)


if __name__ == "__main__":
    unittest.main()
