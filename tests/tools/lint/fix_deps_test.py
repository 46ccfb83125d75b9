import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import build_files  # pylint: disable=wrong-import-position
import fix_deps  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position

FILES = {
    "common/a/BUILD.bazel": """tandem_cc_library(
    name = "a",
    hdrs = ["a.h"],
)

tandem_cc_library(
    name = "b",
    srcs = ["b.cc"],
    deps = ["@absl//:status", "//common/c:c"],  # why
)

tandem_cc_library(
    name = "effect",
    srcs = ["effect.cc"],
)
""",
    "common/a/a.h": "",
    "common/a/b.cc": '#include "common/a/a.h"\n#include "common/d/e.h"\n#include "common/d/d.h"\n',
    "common/a/effect.cc": '#include "common/a/a.h"\n',
    "common/c/BUILD.bazel": 'tandem_cc_library(name = "c", hdrs = ["c.h"])\n',
    "common/c/c.h": "",
    "common/d/BUILD.bazel": """tandem_cc_library(
    name = "d",
    hdrs = ["d.h"],
    deps = [
        "//common/a:effect",
        "//common/c",
    ],
)
tandem_cc_library(name = "e", hdrs = ["e.h"])

[
    tandem_cc_library(
        name = name,
        srcs = [name + ".cc"],
        deps = ["//common/c"],
    )
    for name in ["x", "y"]
]
""",
    "common/d/x.cc": '#include "common/d/d.h"\n',
    "common/d/y.cc": '#include "common/d/e.h"\n',
    "common/d/d.h": "",
    "common/d/e.h": "",
}


class FixDepsTest(unittest.TestCase):

    def test_writes_what_lint_wants(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in FILES.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            before = list(build_files.check(source_tree.SourceTree(root, list(FILES))))
            with contextlib.redirect_stdout(io.StringIO()):
                fix_deps.fix(source_tree.SourceTree(root, list(FILES)))
            after = list(build_files.check(source_tree.SourceTree(root, list(FILES))))
            a_text = (root / "common/a/BUILD.bazel").read_text()
            d_text = (root / "common/d/BUILD.bazel").read_text()
        self.assertEqual(len(before), 9, before)
        self.assertEqual(after, [])
        self.assertIn('''    deps = [
        ":a",
        "//common/d",
        "//common/d:e",
        "@absl//:status",
    ],  # why
''', a_text)
        self.assertIn('''    srcs = ["effect.cc"],
    deps = [":a"],
)
''', a_text)
        self.assertIn('    deps = ["//common/a:effect"],\n', d_text)
        self.assertIn('''        deps = [
            ":d",
            ":e",
        ],
''', d_text)

    def test_short_labels(self):
        self.assertEqual(fix_deps.short_label("a/b", "//a/b:c"), ":c")
        self.assertEqual(fix_deps.short_label("x", "//a/b:b"), "//a/b")
        self.assertEqual(fix_deps.short_label("x", "//a/b:c"), "//a/b:c")
        self.assertEqual(fix_deps.short_label("x", "@absl//:status"), "@absl//:status")


if __name__ == "__main__":
    unittest.main()
