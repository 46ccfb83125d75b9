"""Where thoughts, calls and an answer of some form are in a chat's answers, by the model's template: how they
are read, and what room a form leaves for thoughts."""

from gateway.answer_reader import AnswerReader, ChannelReader, FinalReader, MarkedReader
from gateway.backend import Model
from gateway.chat_request import ChatRequest
from gateway.config import Config
from gateway.errors import bad_request
from gateway.gpt_oss_calls import BEFORE_ANSWER, GptOssParser
from gateway.late_calls import LateCalls
from gateway.marked_calls import MarkedParser
from gateway.reasoning import MARKERS, Begins, ThoughtsReader, beginning, beginning_in, markers_of_template
from gateway.tool_parsers import PARSERS, form_of_answers, has_channels
from tandem.v1 import generation_pb2 as api


class AnswerLayout:
    """Of one request."""

    def __init__(self, config: Config, model: Model, request: ChatRequest):
        """Raises ApiError 400 if the answers cannot be what the request asks for."""
        self._tools = request.tools
        self._has_form = bool(request.params.WhichOneof("constraint"))
        template = model.chat_template
        channels = has_channels(template, bool(request.tools), config.tool_parser)
        if self._has_form:
            _check_calls(request, template, channels)
            self._calls = "gpt_oss" if channels else None
        else:
            self._calls = form_of_answers(template, bool(request.tools), config.tool_parser)
            if request.tools and self._calls is None:
                raise bad_request("this model's chat template has no tools, or asks for calls in a form "
                                  "that this server does not know: see --tool-parser", "tools")
        self._continued = request.messages[-1]["content"] if request.continues else None
        name = config.reasoning_parser or markers_of_template(template)
        self._markers = MARKERS.get(name) if self._calls != "gpt_oss" else None

    @property
    def shows_control_tokens(self) -> bool:
        """Those that calls and thoughts are between have to be seen."""
        return self._calls is not None or self._markers is not None

    def room_for_thoughts(self, prompt: str) -> api.Reasoning | None:
        """What may come before an answer of the form; None: it begins at once."""
        if not self._has_form:
            return None
        if self._calls == "gpt_oss":
            return BEFORE_ANSWER
        if self._markers is None or (begins := self._beginning(prompt)) is Begins.AFTER:
            return None
        start = self._markers.start if begins is Begins.BEFORE else ""
        return api.Reasoning(start=start, end=self._markers.end)

    def _beginning(self, prompt: str) -> Begins:
        return beginning(self._markers, prompt) if self._continued is None else beginning_in(self._markers, self._continued)

    def reader(self, prompt: str) -> AnswerReader:
        """For one choice."""
        if self._calls == "gpt_oss":
            return FinalReader() if self._has_form else ChannelReader(GptOssParser())
        thoughts = self._markers and ThoughtsReader(self._markers, self._beginning(prompt), self._has_form)
        if self._calls is None:
            return MarkedReader(thoughts)
        calls = PARSERS[self._calls](self._tools)
        late = thoughts and isinstance(calls, MarkedParser) and LateCalls(type(calls), self._tools)
        return MarkedReader(thoughts, calls, late or None)


def _check_calls(request: ChatRequest, template: str, channels: bool) -> None:
    """Forced calls are JSON behind the thoughts."""
    if request.forced and channels:
        raise bad_request("this model's calls are in channels, as gpt-oss's: none can be forced",
                          "tool_choice")
    if request.forced and "tools" not in template:
        raise bad_request("this model's chat template has no tools: it would not be told of them",
                          "tools")
