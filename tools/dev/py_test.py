"""Runs one Python unittest file under Bazel and writes its cases to $XML_OUTPUT_FILE.

usage: py_test.py TEST_FILE

Bazel does not see the cases inside; with the file `./dev test` counts each.
"""

import importlib.util
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree


class CaseRecorder(unittest.TextTestResult):
    """Keeps an XML element per case."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.elements = []

    def _record(self, test, outcome=None, text=""):
        name = test.id().split(".")
        element = ElementTree.Element("testcase", name=name[-1], classname=".".join(name[:-1]))
        if outcome:
            ElementTree.SubElement(element, outcome).text = text
        self.elements.append(element)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._record(test, "failure", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._record(test, "error", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._record(test, "skipped", reason)


def main(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-len(".py")], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(resultclass=CaseRecorder, verbosity=2).run(suite)
    out = os.environ.get("XML_OUTPUT_FILE")
    if out:
        root = ElementTree.Element("testsuites")
        ElementTree.SubElement(root, "testsuite", name=path).extend(result.elements)
        ElementTree.ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)
    if suite.countTestCases() == 0:
        print(f"{path}: no tests", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
