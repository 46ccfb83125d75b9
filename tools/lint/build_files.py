"""BUILD files: our macros only, every file in a target, and a target depends on what it includes.

gcc has no layering check, so the last is checked here: each first-party header that a target
includes must belong to the target itself or to one of its direct deps, and each first-party dep
must be there for a header. Targets of one list comprehension share their deps. A BUILD file is Starlark, of which what we use is Python too: it is run
with stand-ins for the rules.
"""

import builtins
import fnmatch
import sys

import include_rules

_CXX = (".h", ".cc", ".cu", ".cuh")
_OURS = {"tandem_cc_library", "tandem_cc_binary", "tandem_cc_test", "tandem_cc_benchmark",
         "tandem_cuda_library", "tandem_cuda_binary", "tandem_cuda_test", "tandem_proto_library",
         "backend_contract_test"}
# Makes NAME and, of the same headers, NAME_emulated; its deps are maintained by hand.
_TWICE = "tandem_cuda_kernels"
_EMULATED = "tandem_cuda_kernels_emulated"
# Compiled on every machine; the others of ours need the CUDA toolkit, or are no C++.
_EVERYWHERE = {"tandem_cc_library", "tandem_cc_binary", "tandem_cc_test", "tandem_cc_benchmark",
               "backend_contract_test", _EMULATED}
_INSTEAD = {"cc_library": "tandem_cc_library", "cc_binary": "tandem_cc_binary",
            "cc_test": "tandem_cc_test"}
_SOURCES = ("srcs", "toolkit_srcs", "emulated_srcs")
_EXEMPT = ("third_party/", "bazel/")


class Target:
    """One target: label, rule, its files as paths from the root, and the line that makes it."""

    def __init__(self, package, rule, line, values):
        self.rule = rule
        self.site = (package, line)
        self.package = package
        self.label = f"//{package}:{values.get('name')}"
        self.srcs = [_path(package, name) for attribute in _SOURCES
                     for name in values.get(attribute) or []]
        if "linkstamp" in values:
            self.srcs.append(_path(package, values["linkstamp"]))
        self.hdrs = [_path(package, name) for name in values.get("hdrs") or []]
        self.hdrs += [_path(package, name) for name in values.get("textual_hdrs") or []]
        self.deps = [absolute_label(package, dep) for dep in values.get("deps") or []]
        self.data = [absolute_label(package, dep) for dep in values.get("data") or []]
        self.alwayslink = bool(values.get("alwayslink"))
        self.manual = "manual" in (values.get("tags") or [])

    def public_headers(self):
        if self.rule == "tandem_proto_library":
            stems = [path[:-len(".proto")] for path in self.srcs]
            return [stem + end for stem in stems for end in (".pb.h", ".grpc.pb.h")]
        return self.hdrs


def absolute_label(package, label):
    """//a/b:b for ":b" in a/b and for "//a/b"."""
    if label.startswith(":"):
        return f"//{package}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rsplit('/', 1)[-1]}"
    return label


def _emulated(package, values):
    """What tandem_cuda_kernels gives to NAME_emulated: no part of the toolkit."""
    deps = [absolute_label(package, dep) + "_emulated" for dep in values.get("cuda_deps") or []]
    return dict(values, name=values["name"] + "_emulated", toolkit_srcs=[],
                deps=list(values.get("deps") or []) + deps)


def _path(package, name):
    if name.startswith("//"):
        return name[2:].replace(":", "/").lstrip("/")
    name = name.lstrip(":")
    return f"{package}/{name}" if package else name


class _Names(dict):
    """Rules and functions that a BUILD file may name; any unknown name is a rule."""

    def __init__(self, package, tree, targets):
        super().__init__()
        self._package = package
        self._tree = tree
        self._targets = targets
        self.update(glob=self._glob, select=lambda cases: sum(cases.values(), []),
                    load=self._load, package=lambda **values: None,
                    exports_files=lambda *names, **values: None)

    def _load(self, label, *names, **_):
        """Constants, and functions that come with them; macros stay unknown names."""
        if any(name.isupper() for name in names) and not label.startswith(("//bazel:", "@")):
            values = {"select": self["select"]}
            exec(self._tree.text(_path(self._package, label)), values)  # pylint: disable=exec-used
            self.update((name, values[name]) for name in names)

    def _glob(self, include, exclude=(), **_):
        prefix = self._package + "/" if self._package else ""
        names = [path[len(prefix):] for path in self._tree.paths
                 if path.startswith(prefix)]

        def matches(name, patterns):
            return any(fnmatch.fnmatch(name, pattern) and
                       ("**" in pattern or name.count("/") == pattern.count("/"))
                       for pattern in patterns)
        return [name for name in names if matches(name, include) and not matches(name, exclude)]

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)
        def add(**values):
            line = sys._getframe(1).f_lineno
            self._targets.append(Target(self._package, name, line, values))
            if name == _TWICE:
                twin = _emulated(self._package, values)
                self._targets.append(Target(self._package, _EMULATED, line, twin))
        return add


def read_targets(tree):
    """(targets, errors) of all BUILD files."""
    targets, errors = [], []
    for path in tree.paths:
        if path.rsplit("/", 1)[-1] not in ("BUILD.bazel", "BUILD") or path.startswith(_EXEMPT):
            continue
        package = path.rpartition("/")[0]
        try:
            code = compile(tree.text(path), path, "exec")
            exec(code, _Names(package, tree, targets))  # pylint: disable=exec-used
        except Exception as error:  # pylint: disable=broad-except
            errors.append(f"{path}: cannot be read: {type(error).__name__}: {error}")
    return targets, errors


def built_sources(targets):
    """The sources that `./dev test` compiles on every machine: all that is in or under tests/ and what that needs."""
    by_label = {target.label: target for target in targets}
    waiting = [target for target in targets
               if target.package.startswith("tests") and not target.manual]
    seen, sources = set(), set()
    while waiting:
        target = waiting.pop()
        if target.label in seen or target.rule not in _EVERYWHERE:
            continue
        seen.add(target.label)
        sources.update(target.srcs)
        waiting += [by_label[label] for label in target.deps + target.data if label in by_label]
    return sources


def check(tree):
    """Yields "path: message"."""
    targets, errors = read_targets(tree)
    yield from errors
    yield from check_rules(targets)
    if not errors:
        yield from check_files(tree, targets)
        yield from check_deps(tree, targets)


def check_rules(targets):
    for target in targets:
        if target.rule in _INSTEAD:
            yield f"{_where(target)}: use {_INSTEAD[target.rule]}, not {target.rule}"


def check_files(tree, targets):
    """Every C++ file is in a target, and in place; every file of a target exists."""
    known = set(tree.paths)
    used = set()
    for target in targets:
        for path in target.srcs + target.hdrs:
            used.add(path)
            if path.endswith(_CXX) and path not in known:
                yield f"{_where(target)}: {path} does not exist"
    for path in tree.with_suffix(_CXX):
        if path.startswith(_EXEMPT):
            continue
        if path not in used:
            yield f"{path}: is in no target of its BUILD file"
        if path.endswith("_test.cc") and not path.startswith("tests/"):
            yield f"{path}: tests belong in tests/{path.rpartition('/')[0]}/"


def header_owners(targets):
    """Header -> labels of the targets that offer it."""
    owners = {}
    for target in targets:
        for header in target.public_headers():
            owners.setdefault(header, set()).add(target.label)
    return owners


def cc_targets(targets):
    """The targets whose deps are checked; one without files only gathers others."""
    return [target for target in targets if target.rule in _OURS and
            target.rule != "tandem_proto_library" and target.srcs + target.hdrs]


def sites(targets):
    """The cc_ targets, in lists of those that one line of a BUILD file makes."""
    by_site = {}
    for target in cc_targets(targets):
        by_site.setdefault(target.site, []).append(target)
    return list(by_site.values())


def is_for_effect(target):
    """Whether a dep on `target` needs no #include: it offers no header, or registers something."""
    return target.alwayslink or not target.public_headers()


def foreign_includes(target, tree):
    """Yields (path, line number, header) of first-party headers that are not the target's own."""
    own = set(target.srcs + target.hdrs)
    for path in sorted(own & set(tree.paths)):
        for number, _, header in include_rules.includes(tree.text(path)):
            if header not in own and header.startswith(include_rules.FIRST_PARTY):
                yield path, number, header


def check_deps(tree, targets):
    """Direct deps are exactly the owners of the headers that a target includes."""
    owners = header_owners(targets)
    by_label = {target.label: target for target in targets}
    for site in sites(targets):
        needed = set()
        for target in site:
            for path, number, header in foreign_includes(target, tree):
                offered_by = owners.get(header, set())
                needed |= offered_by
                if not offered_by:
                    yield f"{path}:{number}: {header} is in no target's hdrs"
                elif not offered_by & set(target.deps):
                    yield (f"{path}:{number}: {target.label} includes {header} and needs the dep "
                           f"{' or '.join(sorted(offered_by))}; run ./dev fmt")
        for dep in sorted({dep for target in site for dep in target.deps}):
            owner = by_label.get(dep)
            if dep.startswith("//") and owner is None:
                yield f"{_where(site[0])}: dep {dep} does not exist"
            elif owner and not is_for_effect(owner) and dep not in needed:
                yield f"{_where(site[0])}: dep {dep} of {site[0].label} is not used; run ./dev fmt"


def _where(target):
    return f"{target.package}/BUILD.bazel"
