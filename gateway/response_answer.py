"""Answers of /v1/responses, whole and as events."""

import time

from gateway.answer_reader import AnswerReader
from gateway.choice import Choice
from gateway.errors import ApiError
from gateway.generation import Answer
from gateway.response_output import Event, ResponseOutput
from gateway.response_request import ResponseRequest
from tandem.v1 import generation_pb2 as api


class ResponseForm:
    """The JSON of one request's answer."""

    end = ""
    by_message = True

    def __init__(self, id: str, model: str, request: ResponseRequest, reader: AnswerReader):
        self._id = id
        self._model = model
        self._created = int(time.time())
        self._echo = request.echo
        self._choice = Choice(request.chat, reader)
        self._output = ResponseOutput(request.tools)
        self._num_events = 0

    def whole(self, answers: list[Answer], _pieces) -> dict:
        [answer] = answers
        for added in self._choice.add_whole(answer):
            self._output.add(added)
        return self._ended(answer.last)

    def first_chunks(self) -> list[Event]:
        return self._numbered([{"type": kind, "response": self._response("in_progress")}
                               for kind in ("response.created", "response.in_progress")])

    def chunks(self, _index: int, message: api.GenerateResponse, _pieces) -> list[Event]:
        """What a message adds, and after the last one the whole."""
        last = bool(message.finish_reason)
        events = self._output.add(self._choice.add(message.text, len(message.token_ids), last))
        if last:
            events += self._output.close(_status(message))
            events.append({"type": f"response.{_status(message)}", "response": self._ended(message)})
        return self._numbered(events)

    def last_chunk(self) -> None:
        return None

    def failed(self, error: ApiError) -> Event:
        return self._numbered([{"type": "error", "code": error.code or error.kind,
                                "message": error.message, "param": error.param}])[0]

    def _numbered(self, events: list[Event]) -> list[Event]:
        first = self._num_events
        self._num_events += len(events)
        return [{**event, "sequence_number": first + i} for i, event in enumerate(events)]

    def _ended(self, last: api.GenerateResponse) -> dict:
        self._output.close(_status(last))
        return self._response(_status(last), _usage(last.usage, self._choice.thought_tokens))

    def _response(self, status: str, usage: dict | None = None) -> dict:
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        completed = {"completed_at": int(time.time())} if status == "completed" else {}
        return {"id": self._id, "object": "response", "created_at": self._created, **completed,
                "status": status, "error": None, "incomplete_details": details, "model": self._model,
                "output": self._output.items if usage else [], "usage": usage, **self._echo}


def _status(last: api.GenerateResponse) -> str:
    return "incomplete" if last.finish_reason == api.FINISH_REASON_LENGTH else "completed"


def _usage(usage: api.Usage, thought_tokens: int) -> dict:
    return {"input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": thought_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens}
