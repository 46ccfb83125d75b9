"""Rewrites `deps` of our cc_ targets: exactly the owners of the headers that a target includes.

Third-party deps stay as they are, and so do deps that carry no header (objects linked for effect).
Targets of one list comprehension share their deps; computed deps are maintained by hand.
"""

import ast

import build_files
import source_tree


def wanted_deps(site, owners, by_label, tree):
    """Labels that the targets of one line need, of those that can be told from includes."""
    current = {dep for target in site for dep in target.deps}
    wanted = {dep for dep in current if not dep.startswith("//") or
              (dep in by_label and build_files.is_for_effect(by_label[dep]))}
    for target in site:
        for _, _, header in build_files.foreign_includes(target, tree):
            offered_by = owners.get(header, set())
            if offered_by and not offered_by & wanted:
                wanted.add(min(offered_by & current or offered_by))
    return wanted


def short_label(package, label):
    """:b for //a/b:b in a/b, //a/b elsewhere."""
    folder, _, name = label.partition(":")
    if folder == f"//{package}":
        return f":{name}"
    return folder if folder.startswith("//") and folder.rsplit("/", 1)[-1] == name else label


def format_deps(package, labels, indent):
    """The value of `deps`, as Bazel's own formatter would write it; `indent` is its line's."""
    def order(label):
        kind = 0 if label.startswith(":") else 1 if label.startswith("//") else 2
        return kind, label.replace(":", "!")

    names = sorted((short_label(package, label) for label in labels), key=order)
    if len(names) < 2:
        return "[" + "".join(f'"{name}"' for name in names) + "]"
    lines = "".join(f'{indent}    "{name}",\n' for name in names)
    return f"[\n{lines}{indent}]"


def fix_text(text, package, wanted_by_line):
    """`text` of a BUILD file with the deps of the rules on those lines written anew."""
    raw = text.encode()
    starts = [0]  # Byte offset of each line; ast counts columns in bytes.
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits = []
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call):
            continue
        values = {keyword.arg: keyword.value for keyword in call.keywords}
        wanted = wanted_by_line.get(call.lineno)
        if wanted is None or "name" not in values:
            continue
        line = text.splitlines()[values.get("deps", values["name"]).lineno - 1]
        indent = line[:len(line) - len(line.lstrip())]
        new = format_deps(package, wanted, indent)
        if isinstance(values.get("deps"), ast.List):
            node = values["deps"]
            edits.append((starts[node.lineno - 1] + node.col_offset,
                          starts[node.end_lineno - 1] + node.end_col_offset, new))
        elif "deps" not in values:
            end = starts[call.end_lineno - 1] + call.end_col_offset - 1
            edits.append((end, end, f"{indent}deps = {new},\n"))
    for start, end, new in sorted(edits, reverse=True):
        raw = raw[:start] + new.encode() + raw[end:]
    return raw.decode()


def fix(tree):
    """Rewrites BUILD files in place; prints the ones that changed."""
    targets, errors = build_files.read_targets(tree)
    for error in errors:
        print(error)
    owners = build_files.header_owners(targets)
    by_label = {target.label: target for target in targets}
    changes = {}
    for site in build_files.sites(targets):
        wanted = wanted_deps(site, owners, by_label, tree)
        if wanted != set(site[0].deps):
            package, line = site[0].site
            changes.setdefault(package, {})[line] = wanted
    for package, wanted_by_line in changes.items():
        path = f"{package}/BUILD.bazel"
        text = tree.text(path)
        fixed = fix_text(text, package, wanted_by_line)
        if fixed != text:
            (tree.root / path).write_text(fixed, encoding="utf-8")
            print(f"fixed deps: {path}")


if __name__ == "__main__":
    fix(source_tree.SourceTree())
