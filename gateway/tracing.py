"""W3C Trace Context of the request that is being answered, and log lines that name it.

Format: https://www.w3.org/TR/trace-context/#traceparent-header
"""

import contextvars
import json
import logging
import re
import time

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-[0-9a-f-]*)?")
_current: contextvars.ContextVar[str | None] = contextvars.ContextVar("traceparent", default=None)


def enter(traceparent: str | None) -> None:
    """For the current task and those that it starts; what is malformed counts as none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    _current.set(found and found.group())


def metadata() -> tuple[tuple[str, str], ...]:
    """Of a gRPC call for the request."""
    traceparent = _current.get()
    return (("traceparent", traceparent),) if traceparent else ()


class JsonFormatter(logging.Formatter):
    """The same members as the coordinator's lines."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{seconds}.{int(record.msecs):03}Z", "level": record.levelname.lower(),
                "process": "tandem_gateway", "message": message}
        if traceparent := _current.get():
            line["trace_id"] = _TRACEPARENT.fullmatch(traceparent).group(1)
        return json.dumps(line)
