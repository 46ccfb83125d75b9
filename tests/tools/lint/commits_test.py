import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import commits  # pylint: disable=wrong-import-position
import source_tree  # pylint: disable=wrong-import-position


class CommitsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                       cwd=self.root, check=True, capture_output=True)

    def problems(self):
        return list(commits.check(source_tree.SourceTree(self.root, [])))

    def test_long_subject(self):
        self.assertEqual(list(commits.check_subject("x" * 72)), [])
        self.assertEqual(len(list(commits.check_subject("x" * 73))), 1)

    def test_history_without_the_first_commit(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "short", "-m", "y" * 80)
        self.assertEqual(self.problems(), [])
        self.git("commit", "-q", "--allow-empty", "-m", "x" * 73)
        self.assertEqual(len(self.problems()), 1)

    def test_no_checkout(self):
        self.assertEqual(self.problems(), [])


if __name__ == "__main__":
    unittest.main()
