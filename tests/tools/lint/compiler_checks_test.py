import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import compiler_checks  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position
import thread_safety  # pylint: disable=wrong-import-position


class CompilerChecksTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def tree(self, files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        return source_tree.SourceTree(self.root, list(files))

    def key(self, files, *command):
        return compiler_checks.key(self.tree(files), "tools/b.h", command)

    def test_key_depends_on_the_command_and_what_is_included_only(self):
        files = {"tools/a.h": "struct A {};\n", "tools/b.h": '#include "tools/a.h"\n', "c.h": ""}
        before = self.key(files, "g++")
        files["c.h"] = "// other\n"
        self.assertEqual(self.key(files, "g++"), before)
        self.assertNotEqual(self.key(files, "g++", "-Wall"), before)
        files["tools/a.h"] = "struct A2 {};\n"
        self.assertNotEqual(self.key(files, "g++"), before)

    def test_what_failed_is_tried_again_and_what_passed_is_not(self):
        tree = self.tree({"good.cc": "", "bad.cc": ""})

        def failures(command):
            return dict(compiler_checks.failures(tree, "x", tree.paths, command, self.root / "cache"))

        def check(path, _):
            return ["sh", "-c", f"echo seen >> log; echo wrong; test {path} = good.cc"]

        self.assertEqual(failures(check), {"bad.cc": "wrong\n"})
        self.assertEqual(failures(check), {"bad.cc": "wrong\n"})
        self.assertEqual((self.root / "log").read_text().count("seen"), 3)

    def test_thread_safety_looks_where_annotated_classes_are(self):
        tree = self.tree({
            "common/base/mutex.h": "",
            "a.h": '#include "common/base/mutex.h"\n',
            "a.cc": '#include "a.h"\n',
            "b.cc": '#include "common/base/mutex.h"\n',
            "c.h": '#include "a.h"\n',
            "c.cc": '#include "c.h"\n'})
        self.assertEqual(thread_safety.sources(tree), ["a.cc", "b.cc"])


if __name__ == "__main__":
    unittest.main()
