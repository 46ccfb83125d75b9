#!/usr/bin/env python3
"""Writes a GGUF model with random weights: of qwen2 architecture, by default in Qwen2-0.5B's shape, of qwen35, a hybrid
of attention and gated delta nets, in Qwen3.5-0.8B's, of qwen35moe, its mixture, in a small shape of 32 experts, or of
glm4moe, a mixture with a draft head, in a small shape of 8.

For speed measurements and load tests: every size and tensor type is real, the text it writes is not. Quantised blocks are
drawn as random bits under scales that keep activations finite. The q4_k_m mix follows llama.cpp: more bits for
attn_v and ffn_down in some layers, and a wider type where the columns are no multiple of 256.

  tools/make_random_model.py --type q4_k_m --out random.gguf
A model, and a draft model that is often right: the first layers of both are equal, the model's others add little.
  tools/make_random_model.py --faint-from 2 --faintness 0.1 --out model.gguf
  tools/make_random_model.py --layers 2 --first-of 24 --out draft.gguf
A model whose draft head is often right: it guesses by the last token alone, to which the layers add little.
  tools/make_random_model.py --arch glm4moe --faint-from 0 --faintness 0.02 --untied --out model.gguf
  tools/make_random_model.py --arch qwen35 --draft-head --faint-from 0 --faintness 0.02 --untied --out hybrid.gguf
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "demo_model"))

from bpe import ALPHABET  # noqa: E402
from gguf_writer import (ARRAY, BOOL, F32, I32, STRING, TYPE_BF16, TYPE_F16, TYPE_F32, TYPE_IQ1_M, TYPE_IQ1_S,  # noqa: E402
                         TYPE_IQ2_S, TYPE_IQ2_XS, TYPE_IQ2_XXS, TYPE_IQ3_S, TYPE_IQ3_XXS, TYPE_NVFP4, TYPE_Q1_0, TYPE_Q2_0,
                         TYPE_Q4_K, TYPE_Q5_0, TYPE_Q6_K, TYPE_Q8_0, TYPE_TQ1_0, TYPE_TQ2_0, U32, Metadata, Tensor, TensorType, write_gguf)
from random_blocks import BLOCKS  # noqa: E402

BLOCKS_PER_CHUNK = 1 << 17
NORMAL_TOKEN, CONTROL_TOKEN, UNUSED_TOKEN = 1, 3, 5
FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k_m": 15, "iq2_xxs": 19, "iq2_xs": 20, "iq3_xxs": 23, "iq1_s": 24, "iq3_s": 26,
              "iq2_s": 28, "iq1_m": 31, "bf16": 32, "tq1_0": 36, "tq2_0": 37, "nvfp4": 39, "q1_0": 40, "q2_0": 41}
# Of the products with NVFP4 matrices, as files have it beside them: what blocks hold is so much larger.
MATRIX_SCALE = 2.0 ** -6
# All matrices, but for those whose columns are no whole blocks (Q8_0).
OF_ONE_TYPE = {"f16": TYPE_F16, "q8_0": TYPE_Q8_0, "iq2_xxs": TYPE_IQ2_XXS, "iq2_xs": TYPE_IQ2_XS, "iq3_xxs": TYPE_IQ3_XXS,
               "iq1_s": TYPE_IQ1_S, "iq3_s": TYPE_IQ3_S, "iq2_s": TYPE_IQ2_S, "iq1_m": TYPE_IQ1_M, "bf16": TYPE_BF16,
               "tq1_0": TYPE_TQ1_0, "tq2_0": TYPE_TQ2_0, "nvfp4": TYPE_NVFP4, "q1_0": TYPE_Q1_0, "q2_0": TYPE_Q2_0}


@dataclass(frozen=True)
class DeltaNet:
    """The recurrent layers: all but each interval's last."""

    key_heads: int
    value_heads: int
    head_size: int
    taps: int
    interval: int

    def channels(self) -> int:
        return (2 * self.key_heads + self.value_heads) * self.head_size

    def inner(self) -> int:
        return self.value_heads * self.head_size


@dataclass(frozen=True)
class Mixture:
    """Experts in place of dense feed-forward layers: routed ones, and one for all tokens."""

    experts: int
    used: int
    ffn: int
    shared_ffn: int
    dense_layers: int = 0  # before those with experts
    gated_shared: bool = True


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    context: int
    tied: bool
    key_length: int = 0  # 0: hidden / heads
    delta: DeltaNet | None = None
    mixture: Mixture | None = None
    first_of: int = 0  # 0, or the layers of the model whose first layers these are
    faint_from: int | None = None
    faintness: float = 1.0  # of what layers from faint_from on add
    draft_head: bool = False

    def architecture(self) -> str:
        if self.delta is None:
            return "qwen2" if self.mixture is None else "glm4moe"
        return "qwen35" if self.mixture is None else "qwen35moe"

    def head_size(self) -> int:
        return self.key_length or self.hidden // self.heads

    def rotated(self) -> int:
        """A quarter of the head, whole pairs."""
        return max(2, self.head_size() // 8 * 2)

    def residual_gain(self, layer: int) -> float:
        """Keeps the residual stream's growth independent of depth."""
        gain = (2 * (self.first_of or self.layers)) ** -0.5
        return gain if self.faint_from is None or layer < self.faint_from else gain * self.faintness

    def has_experts(self, layer: int) -> bool:
        return self.mixture is not None and layer >= self.mixture.dense_layers

    def is_recurrent(self, layer: int) -> bool:
        return self.delta is not None and layer < self.layers and (layer + 1) % self.delta.interval != 0


SIZES = ("hidden", "layers", "heads", "kv_heads", "ffn", "vocabulary", "context")
DEFAULTS = {
    "qwen2": Shape(896, 24, 14, 2, 4864, 151936, 32768, tied=True),
    "qwen35": Shape(1024, 24, 8, 2, 3584, 248320, 32768, tied=True, key_length=256,
                    delta=DeltaNet(key_heads=16, value_heads=16, head_size=128, taps=4, interval=4)),
    "qwen35moe": Shape(1024, 16, 8, 2, 512, 151936, 32768, tied=True, key_length=256,
                       delta=DeltaNet(key_heads=8, value_heads=16, head_size=128, taps=4, interval=4),
                       mixture=Mixture(experts=32, used=4, ffn=512, shared_ffn=512)),
    "glm4moe": Shape(1024, 24, 16, 4, 4096, 151936, 32768, tied=True, key_length=64,
                     mixture=Mixture(experts=8, used=2, ffn=1024, shared_ffn=1024, dense_layers=1, gated_shared=False),
                     draft_head=True),
}


def matrix_type(name: str, columns: int, layer: int, shape: Shape, mix: str) -> TensorType:
    """The type llama.cpp's quantiser gives this matrix (llama_tensor_get_type, February 2025)."""
    if mix in OF_ONE_TYPE:
        return OF_ONE_TYPE[mix] if columns % OF_ONE_TYPE[mix].block == 0 else TYPE_Q8_0
    wide = name == "output" or (name == "token_embd" and shape.tied)
    if name in ("attn_v", "ffn_down", "ffn_down_exps"):
        layers = shape.first_of or shape.layers
        eighth = layers // 8
        wide = layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
    if columns % TYPE_Q4_K.block != 0:
        return TYPE_Q8_0 if wide else TYPE_Q5_0
    return TYPE_Q6_K if wide else TYPE_Q4_K


class RandomTensors:
    """Lists the tensors; each draws its bytes from a generator of its own when it is written."""

    def __init__(self, shape: Shape, mix: str, seed: int) -> None:
        self._shape = shape
        self._mix = mix
        self._seed = seed
        self._tensors: list[Tensor] = []

    def all(self) -> list[Tensor]:
        shape = self._shape
        self._matrix("token_embd", shape.vocabulary, shape.hidden, deviation=0.05)
        for layer in range(shape.layers + shape.draft_head):
            self._layer(layer, shape.residual_gain(layer))
        if shape.draft_head:
            self._draft_inputs(shape.layers)
        self._norm("output_norm.weight")
        if not shape.tied:
            self._matrix("output", shape.vocabulary, shape.hidden, deviation=0.05)
        return self._tensors

    def _layer(self, layer: int, residual: float) -> None:
        shape = self._shape
        self._norm(f"blk.{layer}.attn_norm.weight")
        if shape.is_recurrent(layer):
            self._delta_net(shape.delta, layer, residual)
        elif shape.delta is not None:
            self._gated_attention(layer, residual)
        else:
            self._attention(layer, residual)
        self._norm(f"blk.{layer}.{'ffn' if shape.architecture() == 'qwen2' else 'post_attention'}_norm.weight")
        if shape.has_experts(layer):
            self._experts(shape.mixture, layer, residual)
        else:
            self._feed_forward("", (), shape.ffn, layer, residual)

    def _draft_inputs(self, layer: int) -> None:
        """Of the embedding all, of the state nothing."""
        hidden = self._shape.hidden
        for part in ("enorm", "hnorm"):
            self._tensors.append(Tensor(f"blk.{layer}.nextn.{part}.weight", TYPE_F32, (hidden,),
                                        lambda: (np.ones(hidden, "<f4").tobytes(),)))
        self._tensors.append(Tensor(f"blk.{layer}.nextn.eh_proj.weight", TYPE_F32, (hidden, 2 * hidden),
                                    lambda: (np.eye(hidden, 2 * hidden, dtype="<f4").tobytes(),)))

    def _attention(self, layer: int, residual: float) -> None:
        shape = self._shape
        kv_size, q_size = shape.kv_heads * shape.head_size(), shape.heads * shape.head_size()
        for part, rows in (("q", q_size), ("k", kv_size), ("v", kv_size)):
            self._matrix(f"attn_{part}", rows, shape.hidden, layer)
            self._vector(f"blk.{layer}.attn_{part}.bias", rows, mean=0.0)
        self._matrix("attn_output", shape.hidden, q_size, layer, gain=residual)

    def _gated_attention(self, layer: int, residual: float) -> None:
        shape = self._shape
        kv_size, q_size = shape.kv_heads * shape.head_size(), shape.heads * shape.head_size()
        for part, rows in (("q", 2 * q_size), ("k", kv_size), ("v", kv_size)):
            self._matrix(f"attn_{part}", rows, shape.hidden, layer)
        for part in ("q", "k"):
            self._vector(f"blk.{layer}.attn_{part}_norm.weight", shape.head_size(), mean=1.0)
        self._matrix("attn_output", shape.hidden, q_size, layer, gain=residual)

    def _delta_net(self, delta: DeltaNet, layer: int, residual: float) -> None:
        hidden = self._shape.hidden
        self._matrix("attn_qkv", delta.channels(), hidden, layer)
        self._matrix("attn_gate", delta.inner(), hidden, layer)
        for part in ("alpha", "beta"):
            self._matrix(f"ssm_{part}", delta.value_heads, hidden, layer)
        self._vector(f"blk.{layer}.ssm_conv1d.weight", (delta.channels(), delta.taps), mean=0.0, deviation=0.5)
        # Decays of 0.5 to 0.95 or so: softplus(-2) is 0.13.
        self._vector(f"blk.{layer}.ssm_a", delta.value_heads, mean=-2.0, deviation=0.5)
        self._vector(f"blk.{layer}.ssm_dt.bias", delta.value_heads, mean=-2.0, deviation=0.5)
        self._vector(f"blk.{layer}.ssm_norm.weight", delta.head_size, mean=1.0)
        self._matrix("ssm_out", hidden, delta.inner(), layer, gain=residual)

    def _feed_forward(self, suffix: str, experts: tuple[int, ...], width: int, layer: int, gain: float) -> None:
        hidden = self._shape.hidden
        self._matrix(f"ffn_gate{suffix}", width, hidden, layer, experts=experts)
        self._matrix(f"ffn_up{suffix}", width, hidden, layer, experts=experts)
        self._matrix(f"ffn_down{suffix}", hidden, width, layer, gain=gain, experts=experts)

    def _experts(self, mixture: Mixture, layer: int, residual: float) -> None:
        hidden = self._shape.hidden
        self._vector(f"blk.{layer}.ffn_gate_inp.weight", (mixture.experts, hidden), mean=0.0)
        self._feed_forward("_exps", (mixture.experts,), mixture.ffn, layer, residual)
        if mixture.gated_shared:
            self._vector(f"blk.{layer}.ffn_gate_inp_shexp.weight", hidden, mean=0.0)
        else:
            self._vector(f"blk.{layer}.exp_probs_b.bias", mixture.experts, mean=0.0)
        self._feed_forward("_shexp", (), mixture.shared_ffn, layer, residual)

    def _norm(self, name: str) -> None:
        self._vector(name, self._shape.hidden, mean=1.0)

    def _vector(self, name: str, size: int | tuple[int, ...], mean: float, deviation: float = 0.05) -> None:
        rng = self._generator(name)
        values = (mean + deviation * rng.standard_normal(size)).astype("<f4").tobytes()
        self._tensors.append(Tensor(name, TYPE_F32, size if isinstance(size, tuple) else (size,), lambda: (values,)))

    def _matrix(self, name: str, rows: int, columns: int, layer: int | None = None, gain: float = 1.0,
                deviation: float | None = None, experts: tuple[int, ...] = ()) -> None:
        kind = matrix_type(name, columns, layer or 0, self._shape, self._mix)
        full = f"{name}.weight" if layer is None else f"blk.{layer}.{name}.weight"
        rng = self._generator(full)
        blocks = math.prod(experts) * rows * columns // kind.block
        sigma = deviation if deviation is not None else gain * columns ** -0.5
        if kind is TYPE_NVFP4 and name != "token_embd":
            sigma /= MATRIX_SCALE
            self._scale(full.replace(".weight", ".scale"), experts or (1,))

        def data() -> Iterator[bytes]:
            for start in range(0, blocks, BLOCKS_PER_CHUNK):
                yield BLOCKS[kind.name](rng, min(BLOCKS_PER_CHUNK, blocks - start), sigma).tobytes()

        self._tensors.append(Tensor(full, kind, (*experts, rows, columns), data))

    def _scale(self, name: str, shape: tuple[int, ...]) -> None:
        self._tensors.append(Tensor(name, TYPE_F32, shape, lambda: (np.full(shape, MATRIX_SCALE, "<f4").tobytes(),)))

    def _generator(self, name: str) -> np.random.Generator:
        return np.random.default_rng((self._seed, zlib.crc32(name.encode())))


def make_vocabulary(size: int) -> tuple[list[str], list[int], list[str]]:
    """Tokens, their types and merges: the 256 bytes, joined letters, three control tokens, unused ones.

    In the proportions of Qwen2's own vocabulary; each joined token has exactly one merge.
    """
    unused = 290 if size > 10000 else 0
    regular = size - unused - 3
    if regular < 256:
        raise ValueError(f"a vocabulary of {size} has no room for 256 bytes and 3 control tokens")
    tokens = sorted(ALPHABET.values())
    joined = list(itertools.islice(joined_letters(), regular - len(tokens)))
    if len(tokens) + len(joined) < regular:
        raise ValueError(f"a vocabulary of {size} is more than this tool can name")
    tokens += [left + right for left, right in joined]
    tokens += ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens += [f"[PAD{len(tokens) + i}]" for i in range(unused)]
    types = [NORMAL_TOKEN] * regular + [CONTROL_TOKEN] * 3 + [UNUSED_TOKEN] * unused
    return tokens, types, [f"{left} {right}" for left, right in joined]


def joined_letters() -> Iterator[tuple[str, str]]:
    """Words of two, three and four letters, each with a space before it and without, as pairs to merge."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    space = ALPHABET[ord(" ")]
    yield from ((space, letter) for letter in letters)
    for length in (1, 2, 3):
        for prefix in itertools.product(letters, repeat=length):
            word = "".join(prefix)
            yield from ((start + word, letter) for letter in letters for start in ("", space))


def make_metadata(shape: Shape, mix: str) -> list[Metadata]:
    tokens, types, merges = make_vocabulary(shape.vocabulary)
    end = types.index(CONTROL_TOKEN)
    arch = shape.architecture()
    return [
        Metadata("general.architecture", STRING, arch),
        Metadata("general.name", STRING, f"random weights, {mix}"),
        Metadata("general.file_type", U32, FILE_TYPES[mix]),
        Metadata("general.quantization_version", U32, 2),
        Metadata(f"{arch}.vocab_size", U32, shape.vocabulary),
        Metadata(f"{arch}.context_length", U32, shape.context),
        Metadata(f"{arch}.embedding_length", U32, shape.hidden),
        Metadata(f"{arch}.block_count", U32, shape.layers + shape.draft_head),
        Metadata(f"{arch}.feed_forward_length", U32, shape.ffn),
        Metadata(f"{arch}.attention.head_count", U32, shape.heads),
        Metadata(f"{arch}.attention.head_count_kv", U32, shape.kv_heads),
        Metadata(f"{arch}.attention.layer_norm_rms_epsilon", F32, 1e-6),
        Metadata(f"{arch}.rope.freq_base", F32, 1e6),
        *(hybrid_metadata(shape) if shape.delta is not None else mixture_metadata(shape)),
        Metadata("tokenizer.ggml.model", STRING, "gpt2"),
        Metadata("tokenizer.ggml.pre", STRING, "qwen2"),
        Metadata("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
        Metadata("tokenizer.ggml.token_type", ARRAY, types, I32),
        Metadata("tokenizer.ggml.merges", ARRAY, merges, STRING),
        Metadata("tokenizer.ggml.bos_token_id", U32, end),
        Metadata("tokenizer.ggml.eos_token_id", U32, end + 2),
        Metadata("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def mixture_metadata(shape: Shape) -> list[Metadata]:
    if (mixture := shape.mixture) is None:
        return []
    arch = shape.architecture()
    numbers = {
        "attention.key_length": shape.head_size(),
        "attention.value_length": shape.head_size(),
        "rope.dimension_count": shape.head_size() // 2,
        "expert_count": mixture.experts,
        "expert_used_count": mixture.used,
        "expert_feed_forward_length": mixture.ffn,
        "expert_shared_count": mixture.shared_ffn // mixture.ffn,
        "leading_dense_block_count": mixture.dense_layers,
        "expert_gating_func": 2,  # sigmoid
        "nextn_predict_layers": int(shape.draft_head),
    }
    return [Metadata(f"{arch}.{key}", U32, value) for key, value in numbers.items()] + [
        Metadata(f"{arch}.expert_weights_norm", BOOL, True),
    ]


def hybrid_metadata(shape: Shape) -> list[Metadata]:
    delta, pairs = shape.delta, shape.rotated() // 2
    numbers = {
        "attention.key_length": shape.head_size(),
        "attention.value_length": shape.head_size(),
        "rope.dimension_count": shape.rotated(),
        "ssm.conv_kernel": delta.taps,
        "ssm.state_size": delta.head_size,
        "ssm.group_count": delta.key_heads,
        "ssm.time_step_rank": delta.value_heads,
        "ssm.inner_size": delta.inner(),
        "full_attention_interval": delta.interval,
        "nextn_predict_layers": int(shape.draft_head),
    }
    sections = [(pairs + 2 - i) // 3 for i in range(3)] + [0]  # pair i belongs to section i % 3
    if (mixture := shape.mixture) is not None:
        numbers |= {
            "expert_count": mixture.experts,
            "expert_used_count": mixture.used,
            "expert_feed_forward_length": mixture.ffn,
            "expert_shared_feed_forward_length": mixture.shared_ffn,
        }
    arch = shape.architecture()
    return [Metadata(f"{arch}.{key}", U32, value) for key, value in numbers.items()] + [
        Metadata(f"{arch}.rope.dimension_sections", ARRAY, sections, I32),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--type", choices=sorted(FILE_TYPES), default="q8_0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", choices=sorted(DEFAULTS), default="qwen2", help="which shape the sizes below default to")
    for size in ("hidden", "layers", "heads", "kv-heads", "ffn", "vocabulary", "context"):
        parser.add_argument(f"--{size}", type=int)
    parser.add_argument("--first-of", type=int, default=0, help="these are the first layers of a model of so many")
    parser.add_argument("--faint-from", type=int, help="layers from this one on add --faintness times as much")
    parser.add_argument("--faintness", type=float, default=1.0)
    parser.add_argument("--draft-head", action="store_true", help="of qwen35 and qwen35moe; glm4moe has one")
    parser.add_argument("--untied", action="store_true", help="give the output head a matrix of its own")
    args = parser.parse_args()
    given = {name: value for name, value in vars(args).items() if name in SIZES and value is not None}
    shape = replace(DEFAULTS[args.arch], tied=not args.untied, first_of=args.first_of, faint_from=args.faint_from,
                    faintness=args.faintness, draft_head=args.draft_head or args.arch == "glm4moe", **given)
    if not shape.key_length and shape.hidden % shape.heads or shape.heads % shape.kv_heads:
        parser.error("hidden must be a multiple of heads, and heads of kv-heads")
    if args.first_of and args.first_of < shape.layers:
        parser.error(f"first-of {args.first_of} is less than the {shape.layers} layers")
    if args.draft_head and args.arch == "qwen2":
        parser.error("qwen2 has no draft heads")
    if (args.faint_from is None) != (args.faintness == 1.0):
        parser.error("faint-from and faintness need each other")
    write_gguf(args.out, make_metadata(shape, args.type), RandomTensors(shape, args.type, args.seed).all())
    print(f"{args.out}: {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
