"""The body of Anthropic's /v1/messages, as the body of a chat that means the same.

Source: https://docs.anthropic.com/en/api/messages.
"""

from gateway import chat_request
from gateway.chat_request import ChatRequest
from gateway.errors import ApiError, renamed
from gateway.fields import Fields
from gateway.message_blocks import messages_of
from gateway.tool_choice import note_left_out

# What a chat names otherwise, or cannot be asked for here.
_OF_CHATS = ("n", "max_completion_tokens", "stop", "response_format", "reasoning_effort", "logprobs", "top_logprobs",
             "include_reasoning", "add_generation_prompt", "continue_final_message", "parallel_tool_calls",
             "stream_options")
# A chat's names, and what is meant.
_NAMES = {"response_format.json_schema": "output_config.format", "tool_choice.function": "tool_choice"}
# They say who asks, how a request is billed, kept or cached, not what the answer is.
_IGNORED = ("betas", "billing_policy", "cache_control", "container", "context_management", "diagnostics",
            "fallback_credit_token", "fallbacks", "inference_geo", "metadata", "service_tier", "speed",
            "user_profile_id", "workspace_id")


def read(body: object) -> ChatRequest:
    fields = Fields(body)
    for name in _OF_CHATS:
        fields.only(name)
    fields.only("mcp_servers", [])
    fields.ignore(_IGNORED)
    variables = {**_thinking(fields), **(fields.object("chat_template_kwargs") or {})}
    messages = messages_of(fields)
    chat = {"messages": messages, "continue_final_message": _goes_on(messages[-1]), "tools": _tools(fields), "stop": fields.strings("stop_sequences"),
            "chat_template_kwargs": variables, **_tool_choice(fields), **_output(fields)}
    try:
        return chat_request.read({**fields.unread(), **chat})
    except ApiError as error:
        raise renamed(error, _NAMES) from None


def _goes_on(last: dict) -> bool:
    """An answer goes on in the assistant's last message."""
    return last["role"] == "assistant" and not last.get("tool_calls")


def _thinking(fields: Fields) -> dict:
    """A template's variable; where it has none, the model thinks as it does."""
    thinking = fields.fields("thinking")
    if thinking is None:
        return {}
    kind = thinking.needed_text("type")
    if kind not in ("adaptive", "between_tools", "disabled", "enabled"):
        raise thinking.error("type", 'must be "adaptive", "between_tools", "disabled" or "enabled"')
    thinking.ignore(("budget_tokens", "display"))
    thinking.refuse_others()
    return {"enable_thinking": kind != "disabled"}


def _tools(fields: Fields) -> list[dict]:
    """Tools that the API's own server would run are left out: there are none here."""
    tools = []
    for i, tool in enumerate(fields.array("tools") or []):
        entry = Fields(tool, f"tools[{i}].")
        kind = entry.text("type") or "custom"
        if kind != "custom":
            note_left_out(kind)
            continue
        function = {"name": entry.needed_text("name"), "description": entry.text("description"),
                    "parameters": entry.object("input_schema")}
        tools.append({"type": "function",
                      "function": {key: one for key, one in function.items() if one is not None}})
    return tools


def _tool_choice(fields: Fields) -> dict:
    choice = fields.fields("tool_choice")
    if choice is None:
        return {}
    kind = choice.needed_text("type")
    several = not choice.boolean("disable_parallel_tool_use")
    if kind == "tool":
        wanted = {"type": "function", "function": {"name": choice.needed_text("name")}}
    elif kind in ("any", "auto", "none"):
        wanted = "required" if kind == "any" else kind
    else:
        raise choice.error("type", 'must be "any", "auto", "none" or "tool"')
    choice.refuse_others()
    return {"tool_choice": wanted, "parallel_tool_calls": several}


def _output(fields: Fields) -> dict:
    """The answer's form and the effort."""
    form, effort = fields.fields("output_format"), None  # its older name
    if (config := fields.fields("output_config")) is not None:
        form, effort = config.fields("format") or form, config.text("effort")
        config.ignore(("task_budget",))
        config.refuse_others()
    read = {} if effort is None else {"reasoning_effort": effort}
    if form is not None:
        if form.needed_text("type") != "json_schema":
            raise form.error("type", 'must be "json_schema"')
        schema = {"name": "answer", "schema": form.object("schema")}
        form.refuse_others()
        read["response_format"] = {"type": "json_schema", "json_schema": schema}
    return read
