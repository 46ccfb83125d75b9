import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "dev"))
import compdb  # pylint: disable=wrong-import-position

BIN = "bazel-out/k8-opt/bin"


def action(source, output=f"{BIN}/x.o", flags=()):
    return {"arguments": ["gcc", *flags, "-c", source, "-o", output]}


def entries(*actions):
    wrapper = '#include "kernels/cuda/rows/rows.cu"\n'
    return compdb.entries(actions, pathlib.Path("/repo"), lambda path: wrapper)


class CompdbTest(unittest.TestCase):

    def test_one_entry_per_file_in_order(self):
        found = entries(action("b/b.cc"), action("a/a.cc"), action("b/b.cc", f"{BIN}/again.o"))
        self.assertEqual([one["file"] for one in found], ["a/a.cc", "b/b.cc"])
        self.assertEqual(found[1]["arguments"], ["gcc", "-c", "b/b.cc", "-o", f"{BIN}/x.o"])
        self.assertEqual(found[0]["directory"], "/repo")

    def test_flags_that_clang_refuses(self):
        found = entries(action("a.cc", flags=("-fno-canonical-system-headers", "-Wall")))
        self.assertEqual(found[0]["arguments"][:2], ["gcc", "-Wall"])

    def test_tools_of_the_build_are_left_out(self):
        self.assertEqual(entries(action("a.cc", "bazel-out/k8-opt-exec-2B5C/bin/a.o"),
                                 action("b.cc", "bazel-out/host/bin/b.o")), [])

    def test_kernel_by_its_emulated_twin(self):
        found = entries(action(f"{BIN}/kernels/cuda/rows/rows/rows_emulated.cc", flags=("-DEMULATED",)))
        self.assertEqual(found[0]["file"], "kernels/cuda/rows/rows.cu")
        self.assertEqual(found[0]["arguments"][:5],
                         ["gcc", "-DEMULATED", "-c", "-x", "c++"])


if __name__ == "__main__":
    unittest.main()
