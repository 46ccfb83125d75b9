"""Links between documents: the file is there, and so is the heading that is named.

Addresses on the web are not followed.
"""

import posixpath
import re

_LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)\)")
_WEB = re.compile(r"[a-z][a-z0-9+.-]*:")
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_CODE = re.compile(r"`[^`]*`")


def check(tree):
    """Yields "path:line: message"."""
    known = set(tree.paths)
    folders = {parent for path in known for parent in _parents(path)}
    documents = tree.with_suffix((".md",))
    anchors = {path: anchors_of(tree.text(path)) for path in documents}
    for path in documents:
        for number, target in links(tree.text(path)):
            name, _, anchor = target.partition("#")
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
            if wanted not in known and wanted not in folders:
                yield f"{path}:{number}: {target}: there is no {wanted}"
            elif anchor and wanted in anchors and anchor not in anchors[wanted]:
                yield f"{path}:{number}: {target}: {wanted} has no heading for #{anchor}"


def links(text):
    """Yields (line number, target) of each link that is no address on the web."""
    for number, line in _prose(text):
        for target in _LINK.findall(_CODE.sub("", line)):
            if not _WEB.match(target):
                yield number, target


def anchors_of(text):
    """What GitHub calls the headings of a document: a later one of the same name has a number."""
    found = set()
    for _, line in _prose(text):
        heading = _HEADING.match(line)
        if heading:
            base = slug(heading.group(1))
            candidates = [base] + [f"{base}-{i}" for i in range(1, len(found) + 1)]
            found.add(next(name for name in candidates if name not in found))
    return found


def slug(heading):
    """The heading in lower case, without punctuation, blanks as hyphens; of a link its text."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def _prose(text):
    """Yields the numbered lines that are in no fenced code."""
    fence = None
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and fence in (None, mark.group(1)):
            fence = None if fence else mark.group(1)
        elif fence is None:
            yield number, line


def _parents(path):
    while path:
        path = posixpath.dirname(path)
        yield path or "."
