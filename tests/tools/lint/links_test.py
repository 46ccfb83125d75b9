import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import links  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position

GOOD = {
    "README.md": "# Top\n[a](docs/a.md), [its part](docs/a.md#second-part), [here](#top), [folder](docs)\n"
                 "[web](https://example.com/x#y), [mail](mailto:a@b)\n",
    "docs/a.md": "## Second part\n[up](../README.md)\n",
}


def problems(changes):
    files = {**GOOD, **changes}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return list(links.check(source_tree.SourceTree(root, list(files))))


class LinksTest(unittest.TestCase):

    def refused(self, expected, changes):
        self.assertEqual(problems(changes), [expected])

    def test_good_tree(self):
        self.assertEqual(problems({}), [])

    def test_no_such_file(self):
        self.refused("docs/b.md:2: a.html: there is no docs/a.html", {"docs/b.md": "x\n[a](a.html)\n"})

    def test_no_such_heading(self):
        self.refused("docs/b.md:1: a.md#third: docs/a.md has no heading for #third",
                     {"docs/b.md": "[a](a.md#third)"})

    def test_no_such_heading_here(self):
        self.refused("docs/b.md:1: #b: docs/b.md has no heading for #b", {"docs/b.md": "[a](#b)"})

    def test_code_holds_no_links(self):
        self.assertEqual(problems({"docs/b.md": "`[a](b)`\n```\n[a](b)\n# no heading\n```\n"}), [])

    def test_code_holds_no_headings(self):
        self.refused("docs/b.md:1: #no: docs/b.md has no heading for #no",
                     {"docs/b.md": "[a](#no)\n~~~\n```\n# no\n~~~\n"})

    def test_headings_as_github_names_them(self):
        self.assertEqual(links.slug("What `--x` does: A, b & [c](d.md)"), "what---x-does-a-b--c")
        self.assertEqual(links.anchors_of("# A\n## A ##\n# A\n"), {"a", "a-1", "a-2"})

    def test_parentheses_in_a_target(self):
        self.assertEqual(list(links.links("([a](b_(c).md))")), [(1, "b_(c).md")])


if __name__ == "__main__":
    unittest.main()
