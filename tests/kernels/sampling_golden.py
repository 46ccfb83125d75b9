#!/usr/bin/env python3
"""Writes sampling_golden.h: probabilities of every sampler on fixed logits, by its definition.

Independent of Tandem's code, in float64. Sources: vLLM (apply_penalties: repetition, then frequency and presence; logit_bias
before), llama.cpp (typical, XTC), Meister et al., "Locally typical sampling" (2022).

    tests/kernels/sampling_golden.py > tests/kernels/sampling_golden.h && ./dev fmt
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

VOCAB = 40


def fixed_logits() -> list[float]:
    """Sixteenths in [-4, 4), each of them a float; two ids share the largest but one."""
    state, logits = 7, []
    for _ in range(VOCAB):
        state = (state * 1103515245 + 12345) % 2**31
        logits.append(((state >> 8) % 128 - 64) / 16)
    logits[33] = logits[5] = max(logits) - 0.25
    return logits


def adjusted(logits: list[float], wish: dict[str, Any]) -> list[float]:
    out = list(logits)
    for token, bias in wish.get("logit_bias", {}).items():
        out[token] += bias
    prompt, generated = wish.get("prompt", []), wish.get("generated", [])
    repetition = wish.get("repetition", 1.0)
    for token in set(prompt) | set(generated):
        out[token] = out[token] / repetition if out[token] > 0 else out[token] * repetition
    for token, times in Counter(generated).items():
        out[token] -= wish.get("frequency", 0.0) * times + wish.get("presence", 0.0)
    return out


def adjustments(wish: dict[str, Any]) -> list[tuple[int, float, float, float]]:
    """The same as a step carries it: id, bias, repetition, penalty."""
    prompt, generated = wish.get("prompt", []), wish.get("generated", [])
    times, entries = Counter(generated), []
    for token in sorted(set(prompt) | set(generated) | set(wish.get("logit_bias", {}))):
        penalty = 0.0
        if times[token] > 0:
            penalty = wish.get("frequency", 0.0) * times[token] + wish.get("presence", 0.0)
        occurs = token in prompt or token in generated
        entries.append((token, wish.get("logit_bias", {}).get(token, 0.0),
                        wish.get("repetition", 1.0) if occurs else 1.0, penalty))
    return entries


def normal(p: list[float]) -> list[float]:
    total = math.fsum(p)
    return [value / total for value in p]


def keep(p: list[float], kept: set[int]) -> list[float]:
    return normal([value if token in kept else 0.0 for token, value in enumerate(p)])


def fewest(p: list[float], order: list[int], share: float) -> list[float]:
    """The first ids of the order that hold the share."""
    kept: set[int] = set()
    for token in order:
        if math.fsum(p[other] for other in kept) >= share:
            break
        kept.add(token)
    return keep(p, kept)


def probabilities(logits: list[float], wish: dict[str, Any]) -> list[float]:
    scaled = [value / wish.get("temperature", 1.0) for value in adjusted(logits, wish)]
    p = normal([math.exp(value - max(scaled)) for value in scaled])
    p = keep(p, {token for token in range(VOCAB) if p[token] >= wish.get("min_p", 0.0) * max(p)})
    alive = lambda: [token for token in range(VOCAB) if p[token] > 0]
    heaviest = lambda: sorted(alive(), key=lambda token: -p[token])
    if wish.get("top_k", 0) > 0:
        p = keep(p, set(heaviest()[:wish["top_k"]]))
    if wish.get("typical_p", 1.0) < 1.0:
        entropy = -math.fsum(value * math.log(value) for value in p if value > 0)
        order = sorted(alive(), key=lambda token: abs(-math.log(p[token]) - entropy))
        p = fewest(p, order, wish["typical_p"])
    if wish.get("top_p", 1.0) < 1.0:
        p = fewest(p, heaviest(), wish["top_p"])
    if wish.get("xtc_probability", 0.0) == 1.0:
        top = [token for token in heaviest() if p[token] >= wish["xtc_threshold"]]
        p = keep(p, set(alive()) - set(top[:-1]))
    return p


REPEATED = {"prompt": [3, 9, 9, 21], "generated": [5, 9, 5, 17, 5]}
WISHES: list[dict[str, Any]] = [
    {"temperature": 0.75},
    {"min_p": 0.125},
    {"top_k": 7},
    {"top_p": 0.75},
    {"top_p": 0.1875},
    {"top_p": 0.9375, "min_p": 0.03125, "temperature": 1.5},
    {"logit_bias": {0: 4.0, 5: -2.5, 39: 6.0}},
    {"frequency": 0.5, **REPEATED},
    {"presence": 1.25, **REPEATED},
    {"repetition": 1.5, **REPEATED},
    {"repetition": 0.75, "frequency": -0.25, "presence": -0.5, "temperature": 1.5, **REPEATED},
    {"logit_bias": {9: 3.0, 2: 1.0}, "repetition": 1.25, "frequency": 0.25, "presence": 0.5, **REPEATED},
    {"typical_p": 0.25},
    {"typical_p": 0.875, "temperature": 2.0},
    {"typical_p": 0.5, "top_k": 12},
    {"typical_p": 0.75, "min_p": 0.0625, "top_p": 0.5},
    {"xtc_probability": 1.0, "xtc_threshold": 0.0625},
    {"xtc_probability": 1.0, "xtc_threshold": 0.375},
    {"xtc_probability": 1.0, "xtc_threshold": 0.0},
    {"xtc_probability": 1.0, "xtc_threshold": 0.125, "top_p": 0.875, "temperature": 0.75},
    {"logit_bias": {1: 2.0}, "repetition": 1.25, "presence": 0.5, "temperature": 1.25, "min_p": 0.015625, "top_k": 30,
     "typical_p": 0.9375, "top_p": 0.875, "xtc_probability": 1.0, "xtc_threshold": 0.0625, **REPEATED},
]


def before_top_p(logits: list[float], wish: dict[str, Any]) -> list[float]:
    """What the first draw is from where top_p is the only filter besides min_p; else nothing."""
    if "top_p" not in wish or any(name in wish for name in ("top_k", "typical_p", "xtc_probability")):
        return []
    return probabilities(logits, {**wish, "top_p": 1.0})


def braces(values: list[str]) -> str:
    return "{" + ", ".join(values) + "}"


def main() -> None:
    logits = fixed_logits()
    print("// Written by sampling_golden.py: what every sampler leaves of fixed logits.")
    print("#ifndef TANDEM_TESTS_KERNELS_SAMPLING_GOLDEN_H_\n#define TANDEM_TESTS_KERNELS_SAMPLING_GOLDEN_H_\n")
    print('#include <vector>\n\n#include "kernels/ops/sample.h"\n\nnamespace tandem::kernels {\n')
    print("struct SamplingGolden {\n  SamplingRow row;\n  std::vector<LogitAdjustment> adjustments;"
          "\n  std::vector<double> probabilities;  // by id\n"
          "  std::vector<double> before_top_p;   // likewise; empty unless only min_p and top_p filter\n};\n")
    print(f"inline const std::vector<float> kGoldenLogits = {braces([f'{value}f' for value in logits])};\n")
    print("inline const std::vector<SamplingGolden> kSamplingGolden = {")
    order = ["temperature", "top_p", "min_p", "top_k", "typical_p", "xtc_probability", "xtc_threshold"]
    for wish in WISHES:
        fields = [f".{name} = {wish[name]}" + ("" if name == "top_k" else "f") for name in order if name in wish]
        entries = [braces([str(token)] + [f"{value}f" for value in rest]) for token, *rest in adjustments(wish)]
        p, before = ([f"{value:.9f}" for value in of(logits, wish)] for of in (probabilities, before_top_p))
        print("    {" + ",\n".join([braces(fields), braces(entries), braces(p), braces(before)]) + "},")
    print("};\n\n}  // namespace tandem::kernels\n\n#endif  // TANDEM_TESTS_KERNELS_SAMPLING_GOLDEN_H_")


if __name__ == "__main__":
    main()
