"""A conversation as the model's chat template takes it: some refuse what OpenAI's API allows."""

import collections
import hashlib

# What such a template says when it refuses.
_SYSTEM_FIRST = "System message must be at the beginning"  # Qwen 3.5 to 3.8
_ONE_CALL = "single tool-calls at once"  # Llama 3
_SHORT_IDS = "alphanumeric strings with length 9"  # Mistral
_ID_CHARS = 9


def takes_one_call(template: str) -> bool:
    """Whether a message may have one call at most."""
    return _ONE_CALL in template


def adapted(messages: list[dict], template: str) -> list[dict]:
    """OpenAI's "developer" is "system" to templates that do not know it."""
    if "developer" not in template:
        messages = [{**one, "role": "system"} if one["role"] == "developer" else one for one in messages]
    if _SYSTEM_FIRST in template:
        messages = _system_first(messages)
    if takes_one_call(template):
        messages = _one_call_each(messages)
    if _SHORT_IDS in template:
        messages = [_with_short_ids(one) for one in messages]
    return messages


def _system_first(messages: list[dict]) -> list[dict]:
    """Instructions at the beginning as one message; later ones are the user's: they stay where they are, and so does
    the prompt before them."""
    if all(one["role"] != "system" for one in messages[1:]):
        return messages
    num_first = next((i for i, one in enumerate(messages) if one["role"] != "system"), len(messages))
    first = [{"role": "system", "content": "\n\n".join(one["content"] for one in messages[:num_first])}]
    return (first if num_first else []) + [{**one, "role": "user"} if one["role"] == "system" else one
                                           for one in messages[num_first:]]


def _one_call_each(messages: list[dict]) -> list[dict]:
    """Each call in a message of its own, and behind it what it gave."""
    split, at = [], 0
    while at < len(messages):
        message, at = messages[at], at + 1
        calls = message.get("tool_calls", ())
        if len(calls) < 2:
            split.append(message)
            continue
        end = at
        while end < len(messages) and messages[end]["role"] == "tool":
            end += 1
        outputs, at = _Outputs(messages[at:end]), end
        for call in calls:
            split += [{**message, "tool_calls": [call]}, *outputs.take(call.get("id"))]
            message = {"role": message["role"], "content": ""}  # what it says and thought, but once
        split += outputs.left()
    return split


class _Outputs:
    """What calls gave, by their ids; of those without, in their order."""

    def __init__(self, messages: list[dict]):
        self._messages = dict(enumerate(messages))
        self._by_id: dict[str | None, collections.deque[int]] = {}
        for i, one in enumerate(messages):
            self._by_id.setdefault(_id_of(one.get("tool_call_id")), collections.deque()).append(i)

    def take(self, id: object) -> list[dict]:
        """That of the call with this id, or the next one that has none."""
        for key in (_id_of(id), None):
            if places := self._by_id.get(key):
                return [self._messages.pop(places.popleft())]
        return []

    def left(self) -> list[dict]:
        return list(self._messages.values())


def _id_of(id: object) -> str | None:
    return id if isinstance(id, str) else None


def _with_short_ids(message: dict) -> dict:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short(message["tool_call_id"])}
    if "tool_calls" in message:
        return {**message, "tool_calls": [{**one, "id": _short(one["id"])} if "id" in one else one
                                          for one in message["tool_calls"]]}
    return message


def _short(id: object) -> object:
    """The same of the same."""
    if not isinstance(id, str) or (len(id) == _ID_CHARS and id.isascii() and id.isalnum()):
        return id
    return hashlib.blake2b(id.encode(), digest_size=8).hexdigest()[:_ID_CHARS]
