import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import leftovers  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position


def line_problems(path, line):
    return list(leftovers.check_line(path, line))


class LeftoversTest(unittest.TestCase):

    def test_clean_lines(self):
        for line in ["", "int x = 0;", "// prints nothing: std::cout", "std::snprintf(buf, 4, s);",
                     "#include \"worker/model/decoder.h\"", "a_printf_like(x);"]:
            self.assertEqual(line_problems("common/a.cc", line), [], line)

    def test_marks(self):
        for mark in ["TODO", "FIXME", "XXX", "HACK"]:
            self.assertEqual(line_problems("a.py", f"# {mark}(x)"), [f"leftover {mark}"])

    def test_blanks(self):
        self.assertEqual(line_problems("a.cc", "x "), ["trailing blank"])
        self.assertEqual(line_problems("a.cc", "x\r"), ["carriage return"])
        self.assertEqual(line_problems("a.cc", "\tx"), ["tab"])

    def test_machine_paths(self):
        for folder in ["work", "root"]:
            self.assertEqual(line_problems("a.sh", f"cd /{folder}/x"), ["path of one machine"])
            self.assertEqual(line_problems("a.sh", f"cd some/{folder}/x"), [])
            self.assertEqual(line_problems("a.sh", f'"${{DIR}}/{folder}/x"'), [])

    def test_debug_prints_in_libraries_only(self):
        for line in ["std::cout << x;", "printf(\"x\");", "std::fprintf(stderr, \"x\");",
                     "  puts(\"x\");"]:
            self.assertEqual(len(line_problems("worker/a.cc", line)), 1, line)
            self.assertEqual(line_problems("worker/main.cc", line), [], line)
            self.assertEqual(line_problems("client/a.cc", line), [], line)

    def test_header_guard(self):
        good = ("// What.\n#ifndef TANDEM_COMMON_A_B_H_\n#define TANDEM_COMMON_A_B_H_\n"
                "#endif  // TANDEM_COMMON_A_B_H_\n")
        self.assertEqual(list(leftovers.check_header_guard("common/a_b.h", good)), [])
        self.assertEqual(len(list(leftovers.check_header_guard("common/b.h", good))), 1)
        self.assertEqual(len(list(leftovers.check_header_guard("common/a_b.h", "int x;\n"))), 1)
        self.assertEqual(len(list(leftovers.check_header_guard("common/a_b.h", ""))), 1)

    def test_whole_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "long.cc").write_text("int x;\n" * (leftovers.MAX_LINES + 1))
            (root / "cut.cc").write_text("int x;")
            (root / "bad.py").write_text("def f(:\n")
            (root / "bad.sh").write_text("if true; then\n")
            (root / "good.py").write_text("x = 1\n")
            (root / "data.json").write_text("\t")
            tree = source_tree.SourceTree(root, [path.name for path in root.iterdir()])
            files = sorted(problem.split(":")[0] for problem in leftovers.check(tree))
        self.assertEqual(files, ["bad.py", "bad.sh", "cut.cc", "long.cc"])


if __name__ == "__main__":
    unittest.main()
