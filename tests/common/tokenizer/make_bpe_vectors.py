#!/usr/bin/env python3
"""Writes bpe_vectors.json: small byte-level BPE vocabularies and the ids that an independent implementation gives.

Needs `pip install tokenizers` (Hugging Face). One vocabulary for each family, with the family's published
pre-tokenizer (make_pretokenizer_vectors.py); where the family takes a word that is a token as it stands, there are
words that no merges lead to.

  python3 make_bpe_vectors.py > bpe_vectors.json
"""
import json
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from make_pretokenizer_vectors import PUBLISHED, random_text

WHOLE_WORDS_FIRST = {"llama-bpe": True, "tekken": True, "gpt-4o": False, "deepseek-v3": False, "qwen2": False}
UNREACHABLE = ["word", "\u0120camelCase", "123", "\u00e4\u00b8\u0143", "xyz"]
SENTENCES = ["the quick brown fox jumps over the lazy dog", "don't they'll we've THE CamelCase camelCase words",
             "123 4567 3.14 0x1F (a[i] = b->c) // end\n\n", "\u00e9t\u00e9 na\u00efve \u4e2d\u6587\u4e2d\u6587 "
             "\u0627\u0628\u0627\u0628 \u044f\u044f\u042f \U0001f600\U0001f600  \t\r\n"]


def tokenizer_for(name):
    steps = PUBLISHED[name] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence(steps)
    trainer = trainers.BpeTrainer(vocab_size=380, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    trained.train_from_iterator(SENTENCES * 5, trainer)
    model = json.loads(trained.to_str())["model"]
    vocabulary = model["vocab"]
    for word in UNREACHABLE:
        vocabulary.setdefault(word, len(vocabulary))
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=WHOLE_WORDS_FIRST[name]))
    tokenizer.pre_tokenizer = trained.pre_tokenizer
    return tokenizer, sorted(vocabulary, key=vocabulary.get), [" ".join(merge) for merge in merges]


def main():
    rng = random.Random(7)
    texts = SENTENCES + [random_text(rng) + rng.choice(SENTENCES)[:rng.randrange(30)] for _ in range(60)]
    texts += ["word", " camelCase", "123", "\u4e2d", "xyzxyz xyz"]
    compact = {"separators": (",", ":")}
    entries = []
    for name in WHOLE_WORDS_FIRST:
        tokenizer, tokens, merges = tokenizer_for(name)
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        entries.append(f'{json.dumps(name)}: {{\n"tokens": {json.dumps(tokens, **compact)},\n'
                       f'"merges": {json.dumps(merges, **compact)},\n"ids": {json.dumps(ids, **compact)}}}')
    print('{\n"texts": [')
    print(",\n".join(json.dumps(text) for text in texts))
    print('],\n"vocabularies": {')
    print(",\n".join(entries))
    print("}\n}")


if __name__ == "__main__":
    sys.exit(main())
