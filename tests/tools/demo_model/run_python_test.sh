#!/bin/sh
# Runs one Python unit test with the system's own interpreter (numpy and torch are not needed).
exec /usr/bin/python3 "$@"
