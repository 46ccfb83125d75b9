import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import headers  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position


class HeadersTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def tree(self, files):
        """Of files in tools/, where a name has no folder."""
        files = {name if "/" in name else f"tools/{name}": text for name, text in files.items()}
        for name, text in files.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        return source_tree.SourceTree(self.root, list(files))

    def problems(self, files):
        return list(headers.check(self.tree(files), self.root / "cache"))

    def compiled(self, files):
        """The headers that the compiler is started for."""
        tree = self.tree(files)
        with mock.patch.object(headers.compiler_checks, "failures", return_value=[]) as failures:
            self.assertEqual(list(headers.check(tree, self.root / "cache")), [])
        return [path.removeprefix("tools/") for path in failures.call_args.args[2]]

    def test_names_the_header_that_needs_another_first(self):
        found = self.problems({"a.h": "struct A {};\n", "b.h": "inline A MakeA() { return {}; }\n",
                               "c.h": '#include "tools/a.h"\ninline A MakeC() { return {}; }\n'})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("tools/b.h: does not compile alone"), found)

    def test_a_change_below_is_noticed(self):
        files = {"a.h": "struct A {};\n", "b.h": '#include "tools/a.h"\ninline A a;\n'}
        self.assertEqual(self.problems(files), [])
        self.assertEqual(self.problems(files), [])
        files["a.h"] = "struct B {};\n"
        self.assertEqual(len(self.problems(files)), 1)

    def test_what_a_source_of_the_build_includes_first_is_not_compiled_again(self):
        self.assertEqual(self.compiled({
            "BUILD.bazel": 'tandem_cc_library(name = "a", srcs = ["a.cc"], hdrs = ["a.h"])\n'
                           'tandem_cc_library(name = "c", srcs = ["c.cc"], hdrs = ["c.h"])\n',
            "a.h": "#ifndef TANDEM_A_H_\n#define TANDEM_A_H_\n\n"
                   '#include "tools/below.h"\n#include "tools/second.h"\n\n#endif\n',
            "a.cc": '// What a does.\n#include "tools/a.h"\n\n#include "tools/second.h"\n',
            "below.h": "", "second.h": "",
            # No test needs it, so `./dev test` does not compile it.
            "c.h": "", "c.cc": '#include "tools/c.h"\n',
            "tests/BUILD.bazel":
                'tandem_cc_test(name = "t", srcs = ["t.cc"], deps = ["//tools:a"])\n',
            "tests/t.cc": '#define X\n#include "tools/second.h"\n'}),
            ["c.h", "second.h"])

    def test_a_source_includes_its_own_header_first(self):
        wrong = 'tools/a.cc: must include "tools/a.h" before anything else'
        for text, found in [('#include "tools/a.h"\n', []),
                            ('// Why.\n\n#include "tools/a.h"\n#include <string>\n', []),
                            ('#include <string>\n#include "tools/a.h"\n', [wrong]),
                            ('#define A 1\n#include "tools/a.h"\n', [wrong]),
                            ("int a;\n", [wrong])]:
            self.assertEqual(self.problems({"a.h": "", "a.cc": text}), found, text)


if __name__ == "__main__":
    unittest.main()
