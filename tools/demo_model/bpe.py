"""Byte-level BPE in the GPT-2 manner: byte alphabet, pre-tokenizer, merging.

The pre-tokenizer is GPT-2's pattern restricted to what the demo texts hold (ASCII); the vocabulary therefore
says `tokenizer.ggml.pre = gpt-2`. Source of the scheme: Radford et al. 2019, section 2.2; Sennrich et al. 2016.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

BEGIN = "<|begin|>"
END = "<|end|>"

_PIECES = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_alphabet() -> dict[int, str]:
    """Each byte's printable character: itself where printable, else one from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in visible}
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(0x100 + len(table) - len(visible))
    return table


ALPHABET = byte_alphabet()
_BYTES = {character: byte for byte, character in ALPHABET.items()}


def pieces(text: str) -> list[str]:
    """Splits text where no merge may cross, each piece written in the byte alphabet."""
    return ["".join(ALPHABET[b] for b in piece.encode("utf-8")) for piece in _PIECES.findall(text)]


class Tokenizer:
    """Encodes and decodes with a trained vocabulary. The begin token is never added here."""

    def __init__(self, tokens: list[str], merges: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.merges = merges
        self._ids = {token: i for i, token in enumerate(tokens)}
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._cache: dict[str, list[int]] = {}
        self.begin_id = self._ids[BEGIN]
        self.end_id = self._ids[END]

    @staticmethod
    def load(path: Path) -> Tokenizer:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Tokenizer(data["tokens"], [tuple(m.split(" ")) for m in data["merges"]])

    def save(self, path: Path) -> None:
        data = {"tokens": self.tokens, "merges": [" ".join(m) for m in self.merges]}
        path.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in pieces(text):
            if piece not in self._cache:
                self._cache[piece] = [self._ids[symbol] for symbol in self._merge(piece)]
            ids += self._cache[piece]
        return ids

    def decode(self, ids: list[int]) -> str:
        text = "".join(self.tokens[i] for i in ids if i not in (self.begin_id, self.end_id))
        return bytes(_BYTES[c] for c in text).decode("utf-8", errors="replace")

    def _merge(self, piece: str) -> list[str]:
        symbols = list(piece)
        while len(symbols) > 1:
            pairs = [(self._ranks.get(pair, len(self._ranks)), i)
                     for i, pair in enumerate(zip(symbols, symbols[1:]))]
            rank, i = min(pairs)
            if rank == len(self._ranks):
                break
            symbols[i:i + 2] = [symbols[i] + symbols[i + 1]]
        return symbols
