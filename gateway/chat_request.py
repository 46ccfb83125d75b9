"""The body of /v1/chat/completions, checked, and its messages as chat templates expect them."""

import dataclasses
import json

from gateway import sampling
from gateway.fields import Fields
from gateway.text_parts import read_text
from gateway.tool_choice import ForcedCalls, force, read_tool_choice
from tandem.v1 import generation_pb2 as api

MAX_MESSAGES = 10_000
MAX_TOOLS = 1_000


@dataclasses.dataclass
class ChatRequest:
    model: str | None
    messages: list[dict]
    tools: list[dict]
    template_variables: dict
    add_generation_prompt: bool
    continues: bool  # the answer goes on in the last message
    params: api.SamplingParams
    priority: int
    choices: int
    stream: bool
    include_usage: bool
    one_call: bool  # parallel_tool_calls: false
    include_reasoning: bool
    reasoning_effort: str | None
    forced: ForcedCalls | None = None

    def allow_one_call(self) -> None:
        """As parallel_tool_calls: false does."""
        self.one_call = True
        if self.forced:
            force(self.forced, self.tools, self.one_call, self.params)


def read(body: object) -> ChatRequest:
    fields = Fields(body)
    params = sampling.read_sampling(fields)
    _read_max_tokens(fields, params)
    _read_logprobs(fields, params)
    stream, include_usage = sampling.read_stream(fields)
    messages = read_messages(fields)
    continues, add_generation_prompt = read_end(fields, messages)
    request = ChatRequest(
        model=fields.text("model"), messages=messages, tools=_read_tools(fields),
        template_variables=fields.object("chat_template_kwargs") or {},
        add_generation_prompt=add_generation_prompt, continues=continues, params=params,
        priority=sampling.read_priority(fields), choices=sampling.read_choices(fields),
        stream=stream, include_usage=include_usage,
        one_call=not _default_true(fields, "parallel_tool_calls"),
        include_reasoning=_default_true(fields, "include_reasoning"),
        reasoning_effort=fields.text("reasoning_effort"))
    _apply_tool_choice(fields, request)
    fields.only("add_special_tokens", False)
    fields.only("modalities", ["text"])
    fields.only("skip_special_tokens", True)
    fields.refuse_others()
    return request


def _apply_tool_choice(fields: Fields, request: ChatRequest) -> None:
    choice = read_tool_choice(fields, request.tools)
    if choice == "none":
        request.tools = []
    if request.tools and request.params.WhichOneof("constraint"):
        raise fields.error("tool_choice", 'must be "none": the answer is to have another form, '
                           "which no call has")
    if isinstance(choice, ForcedCalls):
        request.forced = choice
        force(choice, request.tools, request.one_call, request.params)


def _default_true(fields: Fields, name: str) -> bool:
    return fields.boolean(name, default=True)


def _read_max_tokens(fields: Fields, params: api.SamplingParams) -> None:
    for name in ("max_tokens", "max_completion_tokens"):  # the newer name wins
        if (value := fields.integer(name)) is not None:
            params.max_tokens = value


def _read_logprobs(fields: Fields, params: api.SamplingParams) -> None:
    top = fields.integer("top_logprobs", 0, sampling.MAX_TOP_LOGPROBS)
    if fields.boolean("logprobs"):
        params.logprobs = top or 0
    elif top:
        raise fields.error("top_logprobs", "needs logprobs to be true")


def read_messages(fields: Fields) -> list[dict]:
    messages = fields.array("messages")
    if not messages:
        raise fields.error("messages", "must be a list of at least one message")
    if len(messages) > MAX_MESSAGES:
        raise fields.error("messages", f"has {len(messages)} messages, at most {MAX_MESSAGES}")
    return [_message(one, f"messages[{i}].") for i, one in enumerate(messages)]


def read_end(fields: Fields, messages: list[dict]) -> tuple[bool, bool]:
    """(continue_final_message, add_generation_prompt), of which one is true at most."""
    continues = fields.boolean("continue_final_message")
    begins = fields.boolean("add_generation_prompt", default=not continues)
    if continues and begins:
        raise fields.error("continue_final_message", "and add_generation_prompt cannot both be true")
    if continues and (messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls")):
        raise fields.error("continue_final_message", "needs a last message of the assistant, without tool_calls")
    return continues, begins


def _message(value: object, where: str) -> dict:
    """Content becomes one string, a call's arguments an object, thoughts have each name that templates
    use; other keys are the template's."""
    fields = Fields(value, where)
    fields.needed_text("role")
    message = {**value, "content": read_text(fields, "content", _text_of)}
    calls = fields.array("tool_calls")
    if calls:
        message["tool_calls"] = [_past_call(one, f"{where}tool_calls[{i}].")
                                 for i, one in enumerate(calls)]
    else:
        message.pop("tool_calls", None)
    if reasoning := fields.text("reasoning_content") or fields.text("reasoning"):
        message.update(reasoning_content=reasoning, reasoning=reasoning)
        if not (calls and message["content"]):  # of which gpt-oss's template allows one
            message.setdefault("thinking", reasoning)
    return message


def _text_of(part: dict) -> object:
    return part.get(part["type"]) if part.get("type") in ("text", "refusal") else None


def _past_call(value: object, where: str) -> dict:
    call = Fields(value, where)
    function = call.fields("function")
    if function is None or not function.text("name"):
        raise call.error("function", "must be an object with a name")
    return {**value, "function": {**call.take("function"), "arguments": _arguments(function.take("arguments"))}}


def _arguments(value: object) -> dict:
    """An object, as templates need it; none of what is no object: max_tokens may have cut it."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _read_tools(fields: Fields) -> list[dict]:
    tools = fields.array("tools") or []
    if len(tools) > MAX_TOOLS:
        raise fields.error("tools", f"has {len(tools)} entries, at most {MAX_TOOLS}")
    for i, tool in enumerate(tools):
        entry = Fields(tool, f"tools[{i}].")
        if entry.text("type") != "function":
            raise entry.error("type", 'must be "function"')
        function = entry.fields("function")
        if function is None or not function.text("name"):
            raise entry.error("function", "must be an object with a name")
    return tools
