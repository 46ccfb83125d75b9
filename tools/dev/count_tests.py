"""Counts test cases after a `bazel test`: prints what failed, then `N passed, N failed, N skipped`.

usage: count_tests.py BUILD_EVENTS_JSON BAZEL_EXIT_CODE

Which targets ran, and where their test.xml lies, comes from Bazel's build event file, so results of
earlier runs are never counted. A target that fails without a failed case in its test.xml (a crash,
a sanitizer's report at exit, a build error) counts as one failed case.
"""

import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

MAX_FAILURES_SHOWN = 50


class Counts:
    """Sums over test cases. `failures` names the failed ones."""

    def __init__(self):
        self.passed = 0
        self.skipped = 0
        self.failures = []

    def add_target(self, label, ok, xml_texts):
        """Adds one test target: whether Bazel calls it passed, and its test.xml (one per shard)."""
        failures_before = len(self.failures)
        for text in xml_texts:
            try:
                root = ElementTree.fromstring(text)
            except ElementTree.ParseError:
                continue
            for case in root.iter("testcase"):
                self._add_case(label, case)
        if not ok and len(self.failures) == failures_before:
            self.failures.append(f"{label} (did not build, or failed outside its test cases)")

    def _add_case(self, label, case):
        if case.find("failure") is not None or case.find("error") is not None:
            self.failures.append(f"{label} {case.get('classname') or ''}.{case.get('name')}")
        elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed"):
            self.skipped += 1
        else:
            self.passed += 1

    def line(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {self.skipped} skipped"


def read_targets(events):
    """(label -> {"ok", "xml": [paths]}) from build events, each a parsed line of the event file."""
    targets = {}
    for event in events:
        key = event.get("id", {})
        if "testSummary" in key:
            target = targets.setdefault(key["testSummary"]["label"], {"ok": True, "xml": []})
            target["ok"] = event.get("testSummary", {}).get("overallStatus") in ("PASSED", "FLAKY")
        elif "testResult" in key:
            _add_result(targets, key["testResult"], event.get("testResult", {}))
        elif "targetCompleted" in key or "targetConfigured" in key:
            _add_build(targets, key, event)
    return targets


def _add_result(targets, key, result):
    # A flaky test's earlier attempts do not count.
    target = targets.setdefault(key["label"], {"ok": True, "xml": []})
    for output in result.get("testActionOutput", []):
        if output.get("name") == "test.xml":
            path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
            target.setdefault("by_shard", {})[key.get("shard", 0)] = path
    target["xml"] = list(target.get("by_shard", {}).values())


def _add_build(targets, key, event):
    if "targetCompleted" not in key:
        return
    completed = event.get("completed")
    failed = completed is None or not completed.get("success", False)
    if failed:
        targets[key["targetCompleted"]["label"]] = {"ok": False, "xml": []}


def main(events_path, bazel_exit_code):
    events = []
    with open(events_path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                events.append(json.loads(line))
    counts = Counts()
    for label, target in sorted(read_targets(events).items()):
        texts = []
        for path in target["xml"]:
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
        counts.add_target(label, target["ok"], texts)
    if bazel_exit_code not in (0, 3) and not counts.failures:
        counts.failures.append(f"bazel (exit code {bazel_exit_code})")
    for failure in counts.failures[:MAX_FAILURES_SHOWN]:
        print(f"FAILED {failure}")
    if len(counts.failures) > MAX_FAILURES_SHOWN:
        print(f"... and {len(counts.failures) - MAX_FAILURES_SHOWN} more")
    print(counts.line(), flush=True)
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
