"""The content of an answer of /v1/messages: blocks, and the events by which a stream tells of them."""

import json

from gateway.choice import Added
from gateway.forced_calls import CallPart

Event = dict

# Kinds of blocks: the member that is text, and the delta by which it grows.
_TEXTS = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}


class MessageOutput:
    """`blocks`: those so far, the last of which may be open."""

    def __init__(self):
        self.blocks: list[dict] = []
        self._is_open = False
        self._pieces: list[str] = []  # of the open block's text or input

    def add(self, added: Added) -> list[Event]:
        events = []
        if added.reasoning:
            events += self._add_text("thinking", added.reasoning)
        if added.content:
            events += self._add_text("text", added.content)
        for call in added.calls:
            events += self._add_call(call)
        return events

    def close(self) -> list[Event]:
        """The last block's end."""
        if not self._is_open:
            return []
        self._is_open = False
        block, text = self.blocks[-1], "".join(self._pieces)
        if block["type"] == "tool_use":
            block["input"] = _object(text)
        else:
            block[_TEXTS[block["type"]][0]] = text
        return [self._event("content_block_stop")]

    def _add_text(self, kind: str, text: str) -> list[Event]:
        member, delta = _TEXTS[kind]
        events = []
        if not (self._is_open and self.blocks[-1]["type"] == kind):
            signature = {"signature": ""} if kind == "thinking" else {}
            events = self._open({"type": kind, member: "", **signature})
        self._pieces.append(text)
        return events + [self._event("content_block_delta", delta={"type": delta, member: text})]

    def _add_call(self, call: CallPart) -> list[Event]:
        events = []
        if call.id is not None:
            events = self._open({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        if call.arguments:
            self._pieces.append(call.arguments)
            events.append(self._event("content_block_delta",
                                      delta={"type": "input_json_delta", "partial_json": call.arguments}))
        return events

    def _open(self, block: dict) -> list[Event]:
        events = self.close()
        self.blocks.append(block)
        self._is_open, self._pieces = True, []
        return events + [self._event("content_block_start", content_block=dict(block))]

    def _event(self, kind: str, **fields) -> Event:
        return {"type": kind, "index": len(self.blocks) - 1, **fields}


def _object(text: str) -> dict:
    """None of what is none: max_tokens may have cut it."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
