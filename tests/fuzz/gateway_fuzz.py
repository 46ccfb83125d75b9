"""A target of gateway_targets.py under libFuzzer, by atheris of PyPI.

usage: gateway_fuzz.py TARGET [LIBFUZZER FLAGS AND FOLDERS]

With TANDEM_FUZZ_SEEDS=FOLDER it writes the target's seeds there and exits.
"""

import os
import resource
import sys

_MEMORY_BYTES = 4 << 30


def main(name, flags):
    # Of the virtual environment only what Debian lacks.
    sys.path.append(os.path.join(os.environ["TANDEM_VENV"], "lib", f"python3.{sys.version_info[1]}", "site-packages"))
    import atheris
    sys.path[:0] = ["bazel-bin/gateway/tandem_gateway", "tests/fuzz"]
    with atheris.instrument_imports(include=["gateway", "gateway_targets", "jinja2", "json"]):
        from gateway_targets import TARGETS
    check, seeds = TARGETS[name]
    if folder := os.environ.get("TANDEM_FUZZ_SEEDS"):
        for number, seed in enumerate(seeds):
            with open(os.path.join(folder, f"seed-{number}"), "wb") as file:
                file.write(seed)
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    atheris.Setup([sys.argv[0], *flags], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
