"""Log-probabilities in the forms of OpenAI's two endpoints."""

from collections.abc import Iterable, Mapping

from tandem.v1 import generation_pb2 as api

_LEAST = -9999.0  # JSON has no -Infinity; vLLM's value

Pieces = Mapping[int, bytes]


def ids_of(entries: Iterable[api.TokenLogprobs]) -> set[int]:
    """Of the tokens and of the most likely ones."""
    ids = set()
    for entry in entries:
        ids.add(entry.token_id)
        ids.update(top.token_id for top in entry.top)
    return ids


def _text(piece: bytes) -> str:
    return piece.decode(errors="replace")


def chat_form(entries: Iterable[api.TokenLogprobs], pieces: Pieces) -> dict:
    """choices[].logprobs of chat completions."""

    def token(one) -> dict:
        piece = pieces.get(one.token_id, b"")
        return {"token": _text(piece), "logprob": max(one.logprob, _LEAST), "bytes": list(piece)}

    return {"content": [{**token(entry), "top_logprobs": [token(top) for top in entry.top]}
                        for entry in entries],
            "refusal": None}


class CompletionLogprobs:
    """choices[].logprobs of completions; text_offset goes on from message to message."""

    def __init__(self):
        self._offset = 0

    def form(self, entries: Iterable[api.TokenLogprobs], pieces: Pieces,
             first_ids: list[int] | None = None) -> dict:
        """`first_ids`: of a prompt's first token, whose entry is empty."""
        form = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for position, entry in enumerate(entries):
            empty = entry.rank == 0
            id = first_ids[position] if empty and first_ids else entry.token_id
            text = _text(pieces.get(id, b""))
            logprob = max(entry.logprob, _LEAST)
            top = {_text(pieces.get(one.token_id, b"")): max(one.logprob, _LEAST)
                   for one in entry.top}
            form["tokens"].append(text)
            form["token_logprobs"].append(None if empty else logprob)
            form["top_logprobs"].append(None if empty else {text: logprob, **top})
            form["text_offset"].append(self._offset)
            self._offset += len(text)
        return form
