"""Answers and errors of /v1/messages."""

from gateway.answer_reader import AnswerReader
from gateway.chat_request import ChatRequest
from gateway.choice import Choice
from gateway.errors import TOO_LONG, ApiError
from gateway.finish import stop_reason
from gateway.generation import Answer
from gateway.message_output import Event, MessageOutput
from tandem.v1 import generation_pb2 as api

_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
           413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error"}


def error_body(error: ApiError) -> dict:
    """Clients know a conversation that is too long, which they shorten, by these words."""
    message = f"prompt is too long: {error.message}" if error.code == TOO_LONG else error.message
    return {"type": "error", "error": {"type": _ERRORS.get(error.status, "api_error"), "message": message}}


class MessageForm:
    """The JSON of one request's answer."""

    end = ""
    by_message = False

    def __init__(self, id: str, model: str, request: ChatRequest, reader: AnswerReader):
        self._id = id
        self._model = model
        self._params = request.params
        self._choice = Choice(request, reader)
        self._output = MessageOutput()

    def whole(self, answers: list[Answer], _pieces) -> dict:
        [answer] = answers
        for added in self._choice.add_whole(answer):
            self._output.add(added)
        self._output.close()
        return self._message(answer.last.usage, self._output.blocks, **self._ending(answer.last))

    def first_chunks(self) -> list[Event]:
        """What was read is known at the end."""
        return [{"type": "message_start", "message": self._message(
            api.Usage(), [], stop_reason=None, stop_sequence=None)}]

    def chunks(self, _index: int, message: api.GenerateResponse, _pieces) -> list[Event]:
        last = bool(message.finish_reason)
        events = self._output.add(self._choice.add(message.text, len(message.token_ids), last))
        if last:
            events += self._output.close()
            events += [{"type": "message_delta", "delta": self._ending(message), "usage": _usage(message.usage)},
                       {"type": "message_stop"}]
        return events

    def last_chunk(self) -> None:
        return None

    def failed(self, error: ApiError) -> Event:
        return error_body(error)

    def _message(self, usage: api.Usage, content: list[dict], **ending) -> dict:
        return {"id": self._id, "type": "message", "role": "assistant", "model": self._model, "content": content,
                **ending, "usage": _usage(usage)}

    def _ending(self, last: api.GenerateResponse) -> dict:
        matched = stop_reason(last, self._params)
        if last.finish_reason == api.FINISH_REASON_LENGTH:
            reason = "max_tokens"
        elif any(one["type"] == "tool_use" for one in self._output.blocks):
            reason = "tool_use"
        else:
            reason = "stop_sequence" if isinstance(matched, str) else "end_turn"
        return {"stop_reason": reason, "stop_sequence": matched if reason == "stop_sequence" else None}


def _usage(usage: api.Usage) -> dict:
    return {"input_tokens": usage.prompt_tokens - usage.cached_tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached_tokens, "output_tokens": usage.completion_tokens}
