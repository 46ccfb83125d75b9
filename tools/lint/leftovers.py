"""Leftovers: marks, debug prints, machine paths, blanks, and files too long."""

import re
import subprocess

MAX_LINES = 450

_MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
_MACHINE_PATH = re.compile(r"(?<![\w.$})/-])/(work|root)/|/home/\w")
_DEBUG_PRINT = re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w:])(std::)?(f|v|vf)?printf\s*\(|"
                          r"(?<![\w:])(std::)?f?puts\s*\(")
# Programs may print; a library returns a status or logs.
_MAY_PRINT = re.compile(r"^(client|tools|tests)/|_main\.(cc|cu)$|/main\.cc$|"
                        r"^common/base/(check|log)\.cc$|^common/cli/(command|output)\.cc$|_bench(mark)?\.cc$")
_CXX = (".h", ".cc", ".cu", ".cuh")


def check(tree):
    """Yields "path:line: message"."""
    for path in tree.code():
        text = tree.text(path)
        lines = text.split("\n")
        if text and not text.endswith("\n"):
            yield f"{path}:{len(lines)}: no newline at the end of the file"
        if text.endswith("\n\n"):
            yield f"{path}:{len(lines) - 1}: blank line at the end of the file"
        if len(lines) - 1 > MAX_LINES:
            yield f"{path}:{MAX_LINES}: {len(lines) - 1} lines; at most {MAX_LINES}: split it"
        for number, line in enumerate(lines, start=1):
            for message in check_line(path, line):
                yield f"{path}:{number}: {message}"
        if path.endswith((".h", ".cuh")):
            yield from check_header_guard(path, text)
    yield from check_scripts(tree)


def check_line(path, line):
    """Yields the problems of one line."""
    if line.rstrip("\r") != line:
        yield "carriage return"
    elif line.rstrip() != line:
        yield "trailing blank"
    if "\t" in line:
        yield "tab"
    mark = _MARKS.search(line)
    if mark and not path.startswith(("tools/lint/", "tests/tools/lint/")):
        yield f"leftover {mark.group()}"
    if _MACHINE_PATH.search(line):
        yield "path of one machine"
    if path.endswith(_CXX) and not _MAY_PRINT.search(path):
        if _DEBUG_PRINT.search(line.split("//")[0]):
            yield "prints: return a status, or use TANDEM_LOG"


def header_guard(path):
    """TANDEM_COMMON_BASE_LOG_H_ for common/base/log.h."""
    return "TANDEM_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"


def check_header_guard(path, text):
    """Yields where the header guard is missing or has another name."""
    guard = header_guard(path)
    wanted = [f"#ifndef {guard}", f"#define {guard}", f"#endif  // {guard}"]
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("#")), 0)
    found = lines[first:first + 2] + lines[-1:]
    for want, have in zip(wanted, found + [""] * 3):
        if want != have:
            yield f"{path}:{first + 1}: header guard: need `{want}`, found `{have}`"
            return


def check_scripts(tree):
    """Yields syntax errors of Python and shell files."""
    for path in tree.with_suffix((".py",)):
        try:
            compile(tree.text(path), path, "exec")
        except SyntaxError as error:
            yield f"{path}:{error.lineno}: {error.msg}"
    for path in tree.paths:
        if path.endswith(".sh") or path in ("dev", ".ci/run"):
            result = subprocess.run(["bash", "-n", tree.root / path], capture_output=True,
                                    text=True, check=False)
            if result.returncode:
                yield f"{path}: {result.stderr.strip()}"
