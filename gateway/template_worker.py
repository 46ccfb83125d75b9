"""The process that renders templates: a job in on stdin, its text out on stdout, until stdin ends.

A template can loop for ever or ask for all memory. So a job has a timer, whose signal ends the
process whatever it is doing, and the process a limit of memory. template_pool.py starts another.
"""

import json
import os
import resource
import signal
import struct
import sys

from gateway.template_environment import TemplateError, render

MAX_TEXT_BYTES = 4 << 20  # of a rendered prompt; gRPC takes no more
_MEMORY_BYTES = 1 << 30
_MAX_ERROR_CHARS = 1000
_LENGTH = struct.Struct(">I")


def frame(message: object) -> bytes:
    """Length and JSON; both directions have this form."""
    data = json.dumps(message).encode()
    return _LENGTH.pack(len(data)) + data


def length_of(header: bytes) -> int:
    return _LENGTH.unpack(header)[0]


def answer(job: dict) -> dict:
    """{"text"} or {"error"}."""
    try:
        text = render(job["template"], job["variables"])
        size = len(text.encode())
    except TemplateError as error:
        return {"error": str(error)[:_MAX_ERROR_CHARS]}
    except UnicodeEncodeError:
        return {"error": "the chat template wrote text that is not Unicode"}
    if size > MAX_TEXT_BYTES:
        return {"error": f"the chat template wrote {size} bytes, at most {MAX_TEXT_BYTES}"}
    return {"text": text}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the gateway's
    jobs, answers = sys.stdin.buffer, sys.stdout.fileno()
    while header := jobs.read(_LENGTH.size):
        job = json.loads(jobs.read(length_of(header)))
        signal.setitimer(signal.ITIMER_REAL, job["limit_s"])
        data = frame(answer(job))
        signal.setitimer(signal.ITIMER_REAL, 0)
        while data:
            data = data[os.write(answers, data):]


if __name__ == "__main__":
    main()
