"""The input of /v1/responses: items of a conversation, as messages of a chat."""

from gateway.chat_request import MAX_MESSAGES
from gateway.fields import Fields
from gateway.response_tools import name_in_chat
from gateway.text_parts import read_text

# Parts of a content that are text.
_TEXTS = ("input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text")
# What tools of other servers have done in a conversation that goes on here, and tools, which ResponseTools reads.
_ELSEWHERE = ("additional_tools", "code_interpreter_call", "file_search_call", "image_generation_call",
              "tool_search_call", "tool_search_output", "web_search_call")


def messages_of(fields: Fields) -> list[dict]:
    """Of `instructions` and `input`. What an assistant thought, said and called is one message."""
    conversation = _Conversation()
    if instructions := fields.text("instructions"):
        conversation.add("system", instructions)
    given = fields.take("input")
    if isinstance(given, str):
        conversation.add("user", given)
    elif isinstance(given, list):
        if len(given) > MAX_MESSAGES:
            raise fields.error("input", f"has {len(given)} items, at most {MAX_MESSAGES}")
        for i, item in enumerate(given):
            _add_item(conversation, Fields(item, f"input[{i}]."))
    else:
        raise fields.error("input", "must be a string or a list of items")
    if not (messages := conversation.take()):
        raise fields.error("input", "must have at least one item")
    return messages


class _Conversation:

    def __init__(self):
        self._instructions: list[str] = []
        self.messages: list[dict] = []  # after them

    def take(self) -> list[dict]:
        """Instructions at the beginning are one message: many templates take no more."""
        instructions = "\n\n".join(self._instructions)
        first = [{"role": "system", "content": instructions}] if self._instructions else []
        return first + self.messages

    def add(self, role: str, content: str) -> None:
        if role in ("system", "developer") and not self.messages:
            self._instructions.append(content)
        elif role == "assistant":
            self._turn("content")["content"] = content
        else:
            self.messages.append({"role": role, "content": content})

    def add_thoughts(self, text: str) -> None:
        self._turn("reasoning_content", "content", "tool_calls")["reasoning_content"] = text

    def add_call(self, call: dict) -> None:
        self._turn().setdefault("tool_calls", []).append(call)

    def add_output(self, call_id: str, output: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": output})

    def _turn(self, *absent: str) -> dict:
        """The assistant's last message if nothing came after it and it has none of these, else a new one."""
        if self.messages and self.messages[-1]["role"] == "assistant":
            last = self.messages[-1]
            if not any(last.get(name) for name in absent):
                return last
        self.messages.append({"role": "assistant", "content": ""})
        return self.messages[-1]


def _add_item(conversation: _Conversation, item: Fields) -> None:
    kind = item.text("type") or "message"
    if kind == "message":
        role = item.text("role")
        if role not in ("user", "assistant", "system", "developer"):
            raise item.error("role", 'must be "user", "assistant", "system" or "developer"')
        conversation.add(role, _text(item, "content"))
    elif kind == "reasoning":
        # Of one without its text, as those that are encrypted, nothing is known.
        if text := _text(item, "content") or _text(item, "summary"):
            conversation.add_thoughts(text)
    elif kind == "function_call":
        conversation.add_call({"id": item.needed_text("call_id"), "type": "function", "function": {
            "name": name_in_chat(item.text("namespace") or "", item.needed_text("name")),
            "arguments": item.text("arguments")}})
    elif kind == "custom_tool_call":  # whose input is text
        conversation.add_call({"id": item.needed_text("call_id"), "type": "function", "function": {
            "name": item.needed_text("name"), "arguments": {"input": item.text("input") or ""}}})
    elif kind in ("custom_tool_call_output", "function_call_output"):
        conversation.add_output(item.needed_text("call_id"), _text(item, "output"))
    elif kind not in _ELSEWHERE:
        raise item.error("type", 'must be "message", "reasoning", "function_call" or '
                         '"function_call_output"')


def _text(item: Fields, name: str) -> str:
    return read_text(item, name, _text_of)


def _text_of(part: dict) -> object:
    return part.get("text", part.get("refusal")) if part.get("type") in _TEXTS else None
