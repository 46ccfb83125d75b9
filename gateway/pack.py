"""Packs Python modules into one program that Debian's python3 runs.

usage: pack.py OUT MODULE VERSION_FILE [FOLDER=FILE ...]

OUT runs main() of MODULE. Each FILE is packed as FOLDER/its name; a folder on the way becomes a package. VERSION_FILE is
common/base/version.cc. The same files give the same bytes.
"""

import io
import os
import re
import sys
import zipfile

_MAIN = '''\
"""Made by gateway/pack.py."""
import sys
try:
    from MODULE import main
except ModuleNotFoundError as error:
    sys.exit(f"PROGRAM: {error}; it needs Debian's python3-grpcio, python3-httptools, "
             "python3-jinja2, python3-protobuf, python3-starlette, python3-uvicorn, python3-uvloop")
sys.exit(main())
'''
_SHEBANG = b"#!/usr/bin/python3 -sB\n"
_TIME = (1980, 1, 1, 0, 0, 0)


def modules(arguments: list[str]) -> dict[str, str]:
    """Names in the archive with their texts."""
    found = {}
    for argument in arguments:
        folder, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as file:
            found[f"{folder}/{os.path.basename(path)}"] = file.read()
    for name in list(found):
        parts = name.split("/")[:-1]
        for depth in range(len(parts)):
            found.setdefault("/".join(parts[:depth + 1]) + "/__init__.py", "")
    return found


def version(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return re.search(r'kVersion\[\] = "([^"]+)"', file.read()).group(1)


def main(out: str, module: str, version_file: str, *arguments: str) -> None:
    texts = modules(list(arguments))
    texts["gateway/version.py"] = f'"""Of the whole build."""\nVERSION = "{version(version_file)}"\n'
    texts["__main__.py"] = _MAIN.replace("MODULE", module).replace("PROGRAM", os.path.basename(out))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in sorted(texts.items()):
            file.writestr(zipfile.ZipInfo(name, _TIME), text)
    with open(out, "wb") as file:
        file.write(_SHEBANG + archive.getvalue())
    os.chmod(out, 0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
