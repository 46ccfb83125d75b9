#!/usr/bin/env python3
"""Writes pretokenizer_vectors.json: how an independent implementation cuts texts into words.

Needs `pip install tokenizers` (Hugging Face; pattern engine Oniguruma). Each entry of PUBLISHED is
the pre_tokenizer part of a model's tokenizer.json; ByteLevel without its pattern only renames bytes
and is left out. The test compares piece lengths in bytes. Characters are those of Unicode 14.

  python3 make_pretokenizer_vectors.py > pretokenizer_vectors.json
"""
import json
import random
import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated", False)


def words(pattern):
    """Keeps the matches; the pattern matches everything."""
    return pre_tokenizers.Split(Regex(pattern), "removed", True)


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
GPT2_PATTERN = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
                r"|\s+(?!\S)|\s+")
DIGITS = pre_tokenizers.Digits(individual_digits=True)
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
CAPITAL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
ASCII_PUNCTUATION = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"


def llama3(number):
    return (SUFFIX + "|" + PREFIX + r"\p{L}+|" + number + r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + END)


def cased(suffix, number):
    return (PREFIX + CAPITAL + "*" + SMALL + "+" + suffix + "|" + PREFIX + CAPITAL + "+" + SMALL +
            "*" + suffix + "|" + number + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + END)


PUBLISHED = {
    "gpt-2": [GPT2],
    "llama-bpe": [split(llama3(r"\p{N}{1,3}"))],
    "qwen2": [split(llama3(r"\p{N}"))],
    "qwen35": [split(SUFFIX + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" +
                     END)],
    "bailingmoe": [split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
                         r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")],
    "seed-coder": [split(SUFFIX + "|" + PREFIX + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + END)],
    "gpt-4o": [words(cased(SUFFIX + "?", r"\p{N}{1,3}"))],
    "tekken": [split(cased("", r"\p{N}"))],
    "starcoder": [DIGITS, GPT2],
    # Without its Digits step after ByteLevel: that one sees renamed bytes, not text.
    "falcon": [split(r"[\p{P}$+<=>^~|`]+"), words(GPT2_PATTERN), split("[0-9][0-9][0-9]")],
    "deepseek-coder": [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(CJK),
                       DIGITS],
    "deepseek-v3": [split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                    split(ASCII_PUNCTUATION + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                          r"| ?[\p{P}\p{S}]+[\r\n]*" + END)],
    "bloom": [split(BLOOM)],
    "viking": [split(BLOOM), DIGITS],
    "default": [split(r"[\p{P}$+<=>^~|]+"), words(GPT2_PATTERN), split(r"\p{N}+"),
                split("[0-9][0-9][0-9]")],
}

PARTS = (
    "a|b|Z|\u00e9|\u00c9|\u00df|\u03a9|\u044f|\u042f|\u0627|\u0628|\u4e2d|\u6587|\u306e|\u30ab|\ud55c|"
    "\u0e44|\u0e17|\u09af|\u09bf|\u0902|\u0915|\u0301|\u20d0|1|2|9|\u0663|\u00b2|\u00bd|\u2163| | |  |   |"
    "\n|\r\n|\r|\t|\u00a0|\u3000|\u2003|\u2028|'s|'T|'re|'LL|'|\u2019|don't|!|?|...|.|,|-|_|$|+|=|^|~|`|<|"
    ">|/|//|\\|(|)|[|{|\u2026|\u3002|\uff0c|\u201c|\u00ab|\u20ac|\u2192|\U0001f600|\U0001f469\u200d\U0001f469|"
    "\U0001f1eb\U0001f1f7|\u200b|\ufeff|\u01c5|\u02b0|\u00aa\u00ba|\ufb01|\U00010400|\U00010428|\U00020000|"
    "\u1160|\U000e0100|x|word|THE|camelCase|123|4567|0x1F").split("|") + ["|"]


def random_character(rng):
    while True:
        character = chr(rng.randrange(0x80, rng.choice([0x800, 0x3200, 0x1f000])))
        # Not of Unicode 14, half a surrogate pair, or folding to a letter of English suffixes.
        if unicodedata.category(character) not in ("Cn", "Cs") and character not in "\u017f\u212a":
            return character


def random_text(rng):
    return "".join(rng.choice(PARTS) if rng.random() < 0.9 else random_character(rng)
                   for _ in range(rng.randrange(1, 16)))


def pieces(steps, text):
    cut = pre_tokenizers.Sequence(steps).pre_tokenize_str(text)
    return [len(text[begin:end].encode()) for _, (begin, end) in cut]


def main():
    rng = random.Random(20250201)
    texts = [random_text(rng) for _ in range(150)]
    splits = {name: [pieces(steps, text) for text in texts] for name, steps in PUBLISHED.items()}
    # One line per list keeps differences readable.
    print('{\n"texts": [')
    print(",\n".join(json.dumps(text) for text in texts))
    print('],\n"piece_bytes": {')
    print(",\n".join(json.dumps(name) + ": " + json.dumps(lists, separators=(",", ":"))
                     for name, lists in splits.items()))
    print("}\n}")


if __name__ == "__main__":
    sys.exit(main())
