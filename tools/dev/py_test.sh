#!/usr/bin/env bash
# The program of every tandem_py_test: runs from the root of the runfiles.
exec python3 -B tools/dev/py_test.py "$@"
