"""The output of /v1/responses: items, and the events by which a stream tells of them."""

import uuid

from gateway.choice import Added
from gateway.forced_calls import CallPart
from gateway.response_tools import ResponseTools

Event = dict


class ResponseOutput:
    """`items`: those so far, the last of which may be open."""

    def __init__(self, tools: ResponseTools):
        self._tools = tools
        self.items: list[dict] = []
        self._is_open = False
        self._pieces: list[str] = []  # of the open item's text or arguments

    def add(self, added: Added) -> list[Event]:
        events = []
        if added.reasoning:
            events += self._add_text("reasoning", added.reasoning)
        if added.content:
            events += self._add_text("message", added.content)
        for call in added.calls:
            events += self._add_call(call)
        return events

    def close(self, status: str) -> list[Event]:
        """The last item's end; `status`: completed or incomplete."""
        if not self._is_open:
            return []
        self._is_open = False
        item, text = self.items[-1], "".join(self._pieces)
        item["status"] = status
        if item["type"] == "function_call":
            item["arguments"] = text
            events = [self._event("response.function_call_arguments.done", name=item["name"],
                                  arguments=item["arguments"])]
        else:
            part = item["content"][0]
            part["text"] = text
            events = [self._event(f"response.{part['type']}.done", content_index=0, text=text, **_logprobs(part)),
                      self._event("response.content_part.done", content_index=0, part=dict(part))]
        return events + [self._item_event("response.output_item.done")]

    def _add_text(self, kind: str, text: str) -> list[Event]:
        events = []
        if not (self._is_open and self.items[-1]["type"] == kind):
            part = ({"type": "reasoning_text", "text": ""} if kind == "reasoning" else
                    {"type": "output_text", "text": "", "annotations": [], "logprobs": []})
            item = {"id": new_id("rs" if kind == "reasoning" else "msg"), "type": kind,
                    **({"summary": []} if kind == "reasoning" else {"role": "assistant"}), "content": []}
            events += self._open(item)
            item["content"].append(part)
            events.append(self._event("response.content_part.added", content_index=0, part=dict(part)))
        part = self.items[-1]["content"][0]
        self._pieces.append(text)
        return events + [self._event(f"response.{part['type']}.delta", content_index=0, delta=text,
                                     **_logprobs(part))]

    def _add_call(self, call: CallPart) -> list[Event]:
        events = []
        if call.id is not None:
            events += self._open({"id": new_id("fc"), "type": "function_call", "call_id": call.id,
                                  **self._tools.parts_of(call.name), "arguments": ""})
        if call.arguments:
            self._pieces.append(call.arguments)
            events.append(self._event("response.function_call_arguments.delta", delta=call.arguments))
        return events + (self.close("completed") if call.id and call.arguments else [])  # it came whole

    def _open(self, item: dict) -> list[Event]:
        events = self.close("completed")
        item["status"] = "in_progress"
        self.items.append(item)
        self._is_open, self._pieces = True, []
        return events + [self._item_event("response.output_item.added")]

    def _event(self, kind: str, **fields) -> Event:
        return {"type": kind, "item_id": self.items[-1]["id"], "output_index": len(self.items) - 1, **fields}

    def _item_event(self, kind: str) -> Event:
        item = dict(self.items[-1])
        if "content" in item:
            item["content"] = [dict(part) for part in item["content"]]
        return {"type": kind, "output_index": len(self.items) - 1, "item": item}


def _logprobs(part: dict) -> dict:
    """A field of events of such parts."""
    return {"logprobs": []} if part["type"] == "output_text" else {}


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
