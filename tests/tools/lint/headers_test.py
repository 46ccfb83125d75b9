import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import headers  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position


class HeadersTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()

    def tree(self, files):
        for name, text in files.items():
            (self.root / "tools" / name).write_text(text)
        return source_tree.SourceTree(self.root, [f"tools/{name}" for name in files])

    def problems(self, files):
        return list(headers.check(self.tree(files), self.root / "cache"))

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


if __name__ == "__main__":
    unittest.main()
