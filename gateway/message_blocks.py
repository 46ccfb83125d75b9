"""The conversation of /v1/messages: blocks of content, as messages of a chat."""

from gateway.chat_request import MAX_MESSAGES
from gateway.fields import Fields
from gateway.text_parts import read_text

# The first line of Claude Code's instructions, which is another one in each request: no prompt would be found in the
# prefix cache.
_BILLING = "x-anthropic-billing-header:"


def messages_of(fields: Fields) -> list[dict]:
    """Of `system` and `messages`. A result of a tool is a message of its own."""
    messages = []
    instructions = read_text(fields, "system", _text_of)
    if instructions.startswith(_BILLING):
        instructions = instructions.partition("\n")[2]
    if instructions:
        messages.append({"role": "system", "content": instructions})
    given = fields.array("messages")
    if not given:
        raise fields.error("messages", "must be a list of at least one message")
    if len(given) > MAX_MESSAGES:
        raise fields.error("messages", f"has {len(given)} messages, at most {MAX_MESSAGES}")
    for i, one in enumerate(given):
        messages += _messages_of(Fields(one, f"messages[{i}]."))
    return messages


def _messages_of(message: Fields) -> list[dict]:
    role, content = message.needed_text("role"), message.take("content")
    if role not in ("assistant", "system", "user"):
        raise message.error("role", 'must be "assistant", "system" or "user"')
    message.refuse_others()
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise message.error("content", "must be a string or a list of blocks")
    blocks = [Fields(one, message.path(f"content[{i}].")) for i, one in enumerate(content)]
    return [_of_assistant(blocks)] if role == "assistant" else _of_user(role, blocks)


def _of_assistant(blocks: list[Fields]) -> dict:
    """What it thought, said and called."""
    texts, thoughts, calls = [], [], []
    for block in blocks:
        kind = block.text("type")
        if kind == "text":
            texts.append(block.text("text") or "")
        elif kind == "thinking":
            thoughts.append(block.text("thinking") or "")
        elif kind == "tool_use":
            calls.append({"id": block.needed_text("id"), "type": "function", "function": {
                "name": block.needed_text("name"), "arguments": block.object("input")}})
        elif not _is_elsewhere(kind):
            raise block.error("type", 'must be "text", "thinking" or "tool_use"')
    message = {"role": "assistant", "content": "\n".join(texts)}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _is_elsewhere(kind: str | None) -> bool:
    """What Anthropic's servers have done in a conversation that goes on here, of which nothing is known."""
    return kind in ("fallback", "redacted_thinking", "server_tool_use") or (kind or "").endswith("_tool_result")


def _of_user(role: str, blocks: list[Fields]) -> list[dict]:
    messages, texts = [], []

    def end_text() -> None:
        if texts:
            messages.append({"role": role, "content": "\n".join(texts)})
            texts.clear()

    for block in blocks:
        kind = block.text("type")
        if kind == "tool_result":
            end_text()
            messages.append({"role": "tool", "tool_call_id": block.needed_text("tool_use_id"),
                             "content": read_text(block, "content", _text_of)})
        elif kind != "text":
            raise block.error("type", 'must be "text" or "tool_result": this server reads no images, audio or files')
        else:
            texts.append(block.text("text") or "")
    end_text()
    return messages


def _text_of(part: dict) -> object:
    if part.get("type") == "tool_reference":  # of a search among tools: the tool itself is in `tools`
        return f"Tool: {part.get('tool_name')}"
    return part.get("text") if part.get("type") == "text" else None
