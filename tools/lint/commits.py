"""Commit subjects have at most 72 characters."""

import subprocess

MAX_SUBJECT = 72
# Before this commit subjects could be longer.
_SINCE = "afcde91a366c122059ba930390887960b006be0d"


def check(tree):
    """Yields "commit: message" of the commits since then; none outside a git checkout."""
    for line in _log(tree.root, _SINCE).splitlines():
        commit, _, subject = line.partition(" ")
        for message in check_subject(subject):
            yield f"commit {commit}: {message}"


def check_subject(subject):
    """Yields the problems of a subject."""
    if len(subject) > MAX_SUBJECT:
        yield f"the subject has {len(subject)} characters; at most {MAX_SUBJECT}: {subject}"


def _log(root, since):
    """Lines of hash and subject. In a shallow clone without `since` all commits are newer."""
    known = _git(root, "cat-file", "-e", f"{since}^{{commit}}").returncode == 0
    return _git(root, "log", "--format=%h %s", f"{since}..HEAD" if known else "HEAD").stdout


def _git(root, *arguments):
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True,
                              check=False)
    except OSError:  # no git
        return subprocess.CompletedProcess(arguments, 127, "", "")
