import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import build_files  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position

GOOD = {
    "common/a/BUILD.bazel": """
load("//bazel:tandem.bzl", "tandem_cc_library")
package(default_visibility = ["//visibility:public"])
tandem_cc_library(name = "a", srcs = ["a.cc"], hdrs = ["a.h"], deps = ["@absl//:status"])
""",
    "common/a/a.h": "",
    "common/a/a.cc": '#include "common/a/a.h"\n',
    "worker/BUILD.bazel": """
[tandem_cc_binary(name = n, srcs = glob([n + "*.cc"]), deps = ["//common/a"]) for n in ["w"]]
""",
    "worker/w_main.cc": '#include "common/a/a.h"\n',
}


def problems(changes=None):
    return in_tree({**GOOD, **(changes or {})}, lambda tree: list(build_files.check(tree)))


def built(files):
    return in_tree(files, lambda tree: build_files.built_sources(build_files.read_targets(tree)[0]))


def in_tree(files, look):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return look(source_tree.SourceTree(root, list(files)))


class BuildFilesTest(unittest.TestCase):

    def refused(self, part, changes):
        found = problems(changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_good_tree(self):
        self.assertEqual(problems(), [])

    def test_constants_are_read_from_files_of_them(self):
        self.assertEqual(problems({
            "common/isa.bzl": 'FILES = ["w_main.cc"]\n',
            "worker/BUILD.bazel": """
load("//common:isa.bzl", "FILES")
tandem_cc_binary(name = "w", srcs = FILES + [], deps = ["//common/a"])
"""}), [])

    def test_functions_beside_constants_are_called(self):
        self.assertEqual(problems({
            "common/isa.bzl": """
FILES = []
def named(*names):
    return select({"a": [n + "_main.cc" for n in names], "//conditions:default": []})
""",
            "worker/BUILD.bazel": """
load("//common:isa.bzl", "FILES", "named")
tandem_cc_binary(name = "w", srcs = FILES + named("w"), deps = ["//common/a"])
"""}), [])

    def test_native_rules(self):
        self.refused("use tandem_cc_library", {
            "x/BUILD.bazel": 'cc_library(name = "x")\n'})

    def test_file_in_no_target(self):
        self.refused("is in no target", {"common/a/lost.cc": ""})

    def test_file_compiled_at_link(self):
        self.assertEqual(problems({
            "common/b/BUILD.bazel": 'tandem_cc_library(name = "b", linkstamp = "b.cc")\n',
            "common/b/b.cc": ""}), [])

    def test_missing_file(self):
        self.refused("common/b/b.cc does not exist", {
            "common/b/BUILD.bazel": 'tandem_cc_library(name = "b", srcs = ["b.cc"])\n'})

    def test_missing_dep(self):
        self.refused("needs the dep //common/a:a", {
            "x/BUILD.bazel": 'tandem_cc_library(name = "x", srcs = ["x.cc"])\n',
            "x/x.cc": '#include "common/a/a.h"\n'})

    def test_unused_dep(self):
        self.refused("is not used", {
            "x/BUILD.bazel":
                'tandem_cc_library(name = "x", srcs = ["x.cc"], deps = ["//common/a"])\n',
            "x/x.cc": ""})

    def test_a_target_without_files_gathers_others(self):
        self.assertEqual(problems({
            "x/BUILD.bazel": 'tandem_cc_library(name = "x", deps = ["//common/a"])\n'}), [])

    def test_dep_that_does_not_exist(self):
        self.refused("dep //common/b:b does not exist", {
            "x/BUILD.bazel":
                'tandem_cc_library(name = "x", srcs = ["x.cc"], deps = ["//common/b"])\n',
            "x/x.cc": ""})

    def test_header_of_no_target(self):
        found = problems({
            "common/a/b.h": "",
            "worker/w_main.cc": '#include "common/a/a.h"\n#include "common/a/b.h"\n'})
        self.assertEqual(len(found), 2, found)

    def test_tests_belong_in_tests(self):
        self.refused("tests belong in tests/x/", {
            "x/BUILD.bazel": 'tandem_cc_test(name = "x_test", srcs = ["x_test.cc"])\n',
            "x/x_test.cc": ""})

    def test_generated_headers_have_an_owner(self):
        files = {
            "proto/t/BUILD.bazel": 'tandem_proto_library(name = "g", srcs = ["g.proto"])\n',
            "proto/t/g.proto": "",
            "x/BUILD.bazel":
                'tandem_cc_library(name = "x", srcs = ["x.cc"], deps = ["//proto/t:g"])\n',
            "x/x.cc": '#include "proto/t/g.pb.h"\n'}
        self.assertEqual(problems(files), [])
        files["x/BUILD.bazel"] = 'tandem_cc_library(name = "x", srcs = ["x.cc"])\n'
        self.refused("needs the dep //proto/t:g", files)

    def test_unreadable(self):
        self.refused("cannot be read", {"x/BUILD.bazel": "tandem_cc_library(\n"})

    def test_select_counts_every_branch(self):
        self.assertEqual(problems({
            "x/BUILD.bazel": 'tandem_cc_library(name = "x", srcs = select({"a": ["a.cc"], '
                             '"//conditions:default": ["b.cc"]}))\n',
            "x/a.cc": "", "x/b.cc": ""}), [])

    def test_what_tests_need_is_built(self):
        self.assertEqual(built({
            "a/BUILD.bazel": """
tandem_cc_library(name = "a", srcs = ["a.cc"], deps = [":below"])
tandem_cc_library(name = "below", srcs = ["below.cc"])
tandem_cc_binary(name = "program", srcs = ["program.cc"])
tandem_cc_library(name = "lonely", srcs = ["lonely.cc"])
""",
            "tests/BUILD.bazel": """
tandem_cc_test(name = "t", srcs = ["t.cc"], data = ["//a:program"], deps = ["//a"])
tandem_cc_binary(name = "by_hand", srcs = ["by_hand.cc"], tags = ["manual"])
filegroup(name = "files", srcs = ["text.cc"])
"""}), {"a/a.cc", "a/below.cc", "a/program.cc", "tests/t.cc"})

    def test_of_cuda_only_what_is_emulated_is_built(self):
        self.assertEqual(built({
            "k/BUILD.bazel": """
tandem_cuda_kernels(name = "a", srcs = ["a.cu"], toolkit_srcs = ["gpu.cc"],
                    emulated_srcs = ["twin.cc"], cuda_deps = [":b"])
tandem_cuda_kernels(name = "b", srcs = ["b.cu"])
tandem_cuda_library(name = "c", srcs = ["c.cc"])
""",
            "tests/BUILD.bazel": """
tandem_cc_test(name = "t", srcs = ["t.cc"], deps = ["//k:a_emulated"])
tandem_cuda_test(name = "gpu", srcs = ["gpu.cc"], deps = ["//k:a", "//k:c"])
"""}), {"k/a.cu", "k/twin.cc", "k/b.cu", "tests/t.cc"})


if __name__ == "__main__":
    unittest.main()
