"""Sends a POST to the HTTP port of its own machine and prints the answer: `python3 -c` runs it in an image, beside the server.

usage: http_client.py PATH JSON

The port may still be closed, or the gateway not know yet that the server serves (503): it is asked again until a deadline. Any other
status than 200 is an error.
"""

import sys
import time
import urllib.error
import urllib.request

DEADLINE_S = 60


def post(path, body):
    """Raises urllib.error.HTTPError for an answer that is an error, URLError if nothing answers."""
    request = urllib.request.Request("http://127.0.0.1:8080" + path, body.encode(), {"Content-Type": "application/json"})
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return answer.read().decode()
        except urllib.error.URLError as error:  # HTTPError is one
            if time.monotonic() > end or getattr(error, "code", 503) != 503:
                raise
            time.sleep(0.02)


print(post(*sys.argv[1:]))
