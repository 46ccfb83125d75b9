"""The body of /v1/responses, as the body of a chat that means the same.

Nothing is kept between requests: the whole conversation is in `input`.
"""

import dataclasses

from gateway import chat_request
from gateway.chat_request import ChatRequest
from gateway.errors import ApiError, renamed
from gateway.fields import Fields
from gateway.response_items import messages_of
from gateway.response_tools import ResponseTools, name_in_chat

# What a chat names otherwise, or cannot be asked for here.
_OF_CHATS = ("messages", "n", "max_tokens", "max_completion_tokens", "response_format",
             "reasoning_effort", "logprobs", "include_reasoning", "add_generation_prompt", "continue_final_message")
# A chat's names, and what is meant.
_NAMES = {"response_format.json_schema": "text.format", "response_format": "text.format",
          "tool_choice.function": "tool_choice", "max_completion_tokens": "max_output_tokens"}
# They say who asks, what a response has beside its items, of which there is nothing here, or how it is shown.
_IGNORED = ("access_programs", "client_metadata", "include", "max_tool_calls", "prompt_cache_options", "store")


@dataclasses.dataclass
class ResponseRequest:
    chat: ChatRequest
    tools: ResponseTools
    echo: dict  # what a response repeats of its request


def read(body: object) -> ResponseRequest:
    fields = Fields(body)
    for name in _OF_CHATS:
        fields.only(name)
    for name in ("previous_response_id", "conversation", "prompt"):
        if fields.take(name) is not None:
            raise fields.error(name, "is not supported: nothing is kept, send the whole conversation as input")
    fields.only("background", False)
    fields.only("truncation", "disabled")
    fields.only("top_logprobs", 0)
    fields.ignore(_IGNORED)
    tools = ResponseTools(fields)
    chat = {
        "messages": messages_of(fields), "tools": tools.chat, "tool_choice": _tool_choice(fields),
        "max_completion_tokens": fields.integer("max_output_tokens", least=1),
        "response_format": _format(fields), "reasoning_effort": _effort(fields)}
    if (options := fields.fields("stream_options")) is not None:
        options.ignore(("include_obfuscation", "reasoning_summary_delivery"))
        options.refuse_others()
    try:
        request = chat_request.read({**fields.unread(), **chat})
    except ApiError as error:
        raise renamed(error, _NAMES) from None
    return ResponseRequest(request, tools, _echo(body, request))


def _tool_choice(fields: Fields) -> str | dict | None:
    choice = fields.take("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function":
        name = choice.get("name")
        if isinstance(name, str) and isinstance(choice.get("namespace"), str):
            name = name_in_chat(choice["namespace"], name)
        return {"type": "function", "function": {"name": name}}
    return choice


def _format(fields: Fields) -> dict | None:
    text = fields.fields("text")
    if text is None:
        return None
    text.ignore(("verbosity",))
    wanted = text.fields("format")
    text.refuse_others()
    if wanted is None:
        return None
    kind = wanted.text("type")
    if kind not in ("text", "json_object", "json_schema"):
        raise wanted.error("type", 'must be "text", "json_object" or "json_schema"')
    if kind != "json_schema":
        return {"type": kind}
    named = {name: wanted.take(name) for name in ("name", "description", "schema", "strict")}
    wanted.refuse_others()
    return {"type": kind, "json_schema": {name: one for name, one in named.items() if one is not None}}


def _effort(fields: Fields) -> str | None:
    reasoning = fields.fields("reasoning")
    if reasoning is None:
        return None
    reasoning.ignore(("context", "generate_summary", "mode", "summary"))
    effort = reasoning.text("effort")
    reasoning.refuse_others()
    return effort


def _echo(body: dict, request: ChatRequest) -> dict:
    return {
        "background": False, "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"), "metadata": body.get("metadata") or {},
        "parallel_tool_calls": not request.one_call, "previous_response_id": None,
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": "default", "store": False, "temperature": body.get("temperature", 1),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto", "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1), "truncation": "disabled", "user": body.get("user")}
