"""The alerts, by Prometheus' own evaluation of made-up series."""

import json
import os
import shutil
import subprocess
import unittest

import yaml

ALERTS = "deploy/k8s/overlays/monitoring/alerts.yaml"
# `./dev test` leaves it there.
PROMTOOL = os.path.join(os.path.dirname(os.environ.get("TANDEM_VENV", "/none/venv")), "promtool")
UP = 'up{job="tandem", pod="a"}'


def state(name, values):
    """A series per state of pod a, of which `name` is `values`."""
    others = [one for one in ("starting", "waiting", "loading", "ready", "recovering", "draining", "broken") if one != name]
    return {f'tandem_server_state{{pod="a", state="{name}"}}': values,
            **{f'tandem_server_state{{pod="a", state="{one}"}}': "0x90" for one in others}}


class AlertsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.promtool = PROMTOOL if os.path.exists(PROMTOOL) else shutil.which("promtool")
        with open(ALERTS, encoding="utf-8") as text:
            cls.rules = yaml.safe_load(text)["spec"]
        cls.names = [rule["alert"] for group in cls.rules["groups"] for rule in group["rules"]]
        cls.folder = os.environ["TEST_TMPDIR"]
        with open(f"{cls.folder}/rules.json", "w", encoding="utf-8") as file:
            json.dump(cls.rules, file)  # JSON is YAML

    def run_promtool(self, *arguments):
        if self.promtool is None:
            self.skipTest("no promtool: it is in Debian's package prometheus")
        return subprocess.run([self.promtool, *arguments], capture_output=True, text=True, timeout=60)

    def check(self, series, minute, firing):
        """Which alerts fire of these values, one a minute from 0 on; "5x9" is 5, ten times."""
        test = {"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": [{
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{minute}m",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(firing)]}]}]}
        path = f"{self.folder}/test.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(test, file)
        done = self.run_promtool("test", "rules", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_finds_nothing_wrong(self):
        done = self.run_promtool("check", "rules", f"{self.folder}/rules.json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(self.names), len(set(self.names)))

    def test_a_server_that_serves_raises_none(self):
        self.check({UP: "1x90", **state("ready", "1x90"), 'tandem_http_gateway_up{pod="a"}': "1x90",
                    'tandem_requests_refused_total{pod="a", reason="queue_full"}': "0x90"}, 80, [])

    def test_a_server_that_does_not_answer(self):
        self.check({UP: "1x10 0x20", **state("ready", "1x10")}, 13, ["TandemDown"])

    def test_targets_that_vanish(self):
        """`up` has no value then, so nothing is equal to 0."""
        self.check({UP: "1x10", **state("ready", "1x10")}, 25, ["TandemAbsent"])
        self.check({}, 6, ["TandemAbsent"])

    def test_a_start_that_takes_its_time(self):
        self.check({UP: "1x90", **state("loading", "1x25 0x65"), 'tandem_server_state{pod="a", state="ready"}': "0x25 1x65"}, 80, [])

    def test_a_server_that_never_starts(self):
        for name in ("starting", "waiting", "loading"):
            with self.subTest(state=name):
                self.check({UP: "1x90", **state(name, "1x90")}, 29, [])
                self.check({UP: "1x90", **state(name, "1x90")}, 31, ["TandemDoesNotStart"])

    def test_a_server_that_starts_again_and_again(self):
        lives = "1 1 1 _ _ _ _ " * 9
        self.check({UP: "1x90", f'tandem_server_state{{pod="a", state="loading"}}': lives,
                    f'tandem_server_state{{pod="a", state="ready"}}': lives.replace("1", "0")}, 45, ["TandemDoesNotStart"])

    def test_a_server_without_workers(self):
        self.check({UP: "1x90", **state("recovering", "1x90")}, 80, ["TandemNotReady"])

    def test_http_is_down(self):
        self.check({UP: "1x20", **state("ready", "1x20"), 'tandem_http_gateway_up{pod="a"}': "1x5 0x15"}, 12, ["TandemHttpGatewayDown"])

    def test_calls_that_find_the_queue_full(self):
        """Ten a minute; those without a token, or that are wrong, are their callers' trouble."""
        for reason, firing in (("queue_full", ["TandemRefusesRequests"]), ("tokenizer_full", ["TandemRefusesRequests"]),
                               ("rate_limit", []), ("invalid", []), ("unauthenticated", [])):
            with self.subTest(reason=reason):
                self.check({UP: "1x20", **state("ready", "1x20"),
                            f'tandem_requests_refused_total{{pod="a", reason="{reason}"}}': "0+10x20"}, 15, firing)


if __name__ == "__main__":
    unittest.main()
