import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "dev"))
import count_tests  # pylint: disable=wrong-import-position

GTEST = """<testsuites><testsuite name="A">
  <testcase name="Ok" classname="A" status="run" result="completed"/>
  <testcase name="Each/0" classname="P/A" status="run" result="completed"/>
  <testcase name="Each/1" classname="P/A" status="run" result="completed"/>
  <testcase name="NoGpu" classname="A" status="run" result="skipped"><skipped message=""/></testcase>
  <testcase name="DISABLED_X" classname="A" status="notrun" result="suppressed"/>
  %s
</testsuite></testsuites>"""
BAD = '<testcase name="Bad" classname="A" status="run" result="completed"><failure/></testcase>'


def line(*targets):
    counts = count_tests.Counts()
    for label, ok, texts in targets:
        counts.add_target(label, ok, texts)
    return counts.line()


class CountTest(unittest.TestCase):

    def test_counts_cases(self):
        self.assertEqual(line(("//a", True, [GTEST % ""])), "3 passed, 0 failed, 2 skipped")
        self.assertEqual(line(("//a", False, [GTEST % BAD])), "3 passed, 1 failed, 2 skipped")

    def test_sums_targets_and_shards(self):
        self.assertEqual(line(("//a", True, [GTEST % "", GTEST % ""]), ("//b", True, [GTEST % ""])),
                         "9 passed, 0 failed, 6 skipped")

    def test_a_target_that_fails_without_a_failed_case_counts_as_one(self):
        self.assertEqual(line(("//a", False, [])), "0 passed, 1 failed, 0 skipped")
        self.assertEqual(line(("//a", False, ["<broken"])), "0 passed, 1 failed, 0 skipped")
        self.assertEqual(line(("//a", False, [GTEST % ""])), "3 passed, 1 failed, 2 skipped")


class EventsTest(unittest.TestCase):

    def test_reads_results_of_this_run(self):
        events = [
            {"id": {"started": {}}},
            {"id": {"testResult": {"label": "//a:t", "shard": 1}}, "testResult": {
                "testActionOutput": [{"name": "test.log", "uri": "file:///x/test.log"},
                                     {"name": "test.xml", "uri": "file:///x/a%20b.xml"}]}},
            {"id": {"testSummary": {"label": "//a:t"}}, "testSummary": {"overallStatus": "PASSED"}},
            {"id": {"testSummary": {"label": "//a:u"}}, "testSummary": {"overallStatus": "TIMEOUT"}},
            {"id": {"targetCompleted": {"label": "//a:lib"}}, "aborted": {"reason": "X"}},
            {"id": {"targetCompleted": {"label": "//a:ok"}}, "completed": {"success": True}},
        ]
        targets = count_tests.read_targets(events)
        self.assertEqual(targets["//a:t"]["xml"], ["/x/a b.xml"])
        self.assertEqual({label: target["ok"] for label, target in targets.items()},
                         {"//a:t": True, "//a:u": False, "//a:lib": False})


if __name__ == "__main__":
    unittest.main()
