"""A server whose workers stand still for a moment: a stream that runs can't end while something is changed."""

import contextlib
import os
import re
import signal

from edge import programs

STANDING_FLAGS = ("--metrics-listen", "127.0.0.1:0")


def _workers(pid):
    """The children of any thread that are workers."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/comm", encoding="utf-8") as name:
                    if name.read().strip() == "tandem_worker":
                        yield int(child)


class StandingServer:
    """Of an idle coordinator that was started with STANDING_FLAGS. After some 10 s it would give its workers up."""

    def __init__(self, server):
        self._workers = list(_workers(server.process.pid))
        assert self._workers, server.log()
        self._metrics = re.search(r"status page on http://(\S+)", server.log()).group(1)

    def __enter__(self):
        programs.until(lambda: not self.in_flight(), "the server is not idle")
        return self

    def __exit__(self, *_):
        self._signal(signal.SIGCONT)

    def catch(self, begin):
        """What begin() returns, while the stream that it began runs and stands still."""
        caught = []

        def has_caught():
            caught[:] = [begin()]
            self._signal(signal.SIGSTOP)
            if not self.in_flight():  # it was over already
                self._signal(signal.SIGCONT)
                return False
            return True

        programs.until(has_caught, "no stream was caught running")
        return caught[0]

    def in_flight(self):
        text = programs.call(self._metrics, "/metrics")[2].decode()
        return sum(float(value) for value in re.findall(
            r"^tandem_num_requests_(?:running|waiting) (\S+)$", text, re.MULTILINE))

    def _signal(self, number):
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, number)
