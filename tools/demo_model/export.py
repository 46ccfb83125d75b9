#!/usr/bin/env python3
"""Writes a training checkpoint as GGUF: matrices Q8_0, norms F32, output head tied to the embedding."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bpe import Tokenizer
from gguf_writer import (ARRAY, BOOL, F32, I32, STRING, TYPE_F32, TYPE_Q8_0, U32, Metadata, Tensor,
                         write_gguf)
from model import DemoModel, Shape
from quantise import q8_0_bytes, through_q8_0

ARCHITECTURE = "qwen3"
NORMAL_TOKEN, CONTROL_TOKEN = 1, 3
FILE_TYPE_Q8_0 = 7
# Messages below each other, as texts of the training are; the last one is to be continued.
CHAT_TEMPLATE = (r"{{ bos_token }}{% for message in messages %}{{ message.content }}{% if not loop.last %}{{ '\n' }}{% endif %}"
                 "{% endfor %}")


def load_checkpoint(path: Path, quantised: bool) -> DemoModel:
    """The model of a checkpoint; quantised: with the weights that a reader of the GGUF sees."""
    checkpoint = torch.load(path, map_location="cpu")
    model = DemoModel(checkpoint["shape"])
    model.load_state_dict(checkpoint["weights"])
    if quantised:
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.copy_(torch.from_numpy(through_q8_0(parameter.numpy())))
    return model.eval()


def metadata(shape: Shape, tokenizer: Tokenizer) -> list[Metadata]:
    def own(key: str, kind: int, value: object) -> Metadata:
        return Metadata(f"{ARCHITECTURE}.{key}", kind, value)

    special = (tokenizer.begin_id, tokenizer.end_id)
    types = [CONTROL_TOKEN if i in special else NORMAL_TOKEN for i in range(len(tokenizer.tokens))]
    return [
        Metadata("general.architecture", STRING, ARCHITECTURE),
        Metadata("general.name", STRING, "Tandem demo"),
        Metadata("general.description", STRING, "Short stories and questions answered from them"),
        Metadata("general.file_type", U32, FILE_TYPE_Q8_0),
        Metadata("general.quantization_version", U32, 2),
        own("vocab_size", U32, shape.vocabulary),
        own("context_length", U32, shape.context),
        own("embedding_length", U32, shape.hidden),
        own("block_count", U32, shape.layers),
        own("feed_forward_length", U32, shape.ffn),
        own("attention.head_count", U32, shape.heads),
        own("attention.head_count_kv", U32, shape.kv_heads),
        own("attention.key_length", U32, shape.head_size),
        own("attention.value_length", U32, shape.head_size),
        own("attention.layer_norm_rms_epsilon", F32, shape.rms_eps),
        own("rope.dimension_count", U32, shape.head_size),
        own("rope.freq_base", F32, shape.rope_base),
        Metadata("tokenizer.ggml.model", STRING, "gpt2"),
        Metadata("tokenizer.ggml.pre", STRING, "gpt-2"),
        Metadata("tokenizer.ggml.tokens", ARRAY, tokenizer.tokens, STRING),
        Metadata("tokenizer.ggml.token_type", ARRAY, types, I32),
        Metadata("tokenizer.ggml.merges", ARRAY, [" ".join(m) for m in tokenizer.merges], STRING),
        Metadata("tokenizer.ggml.bos_token_id", U32, tokenizer.begin_id),
        Metadata("tokenizer.ggml.eos_token_id", U32, tokenizer.end_id),
        Metadata("tokenizer.ggml.add_bos_token", BOOL, True),
        Metadata("tokenizer.ggml.add_eos_token", BOOL, False),
        Metadata("tokenizer.chat_template", STRING, CHAT_TEMPLATE),
    ]


def tensors(model: DemoModel) -> list[Tensor]:
    """The state dict's names are GGUF's names."""
    found = []
    for name, value in model.state_dict().items():
        array = value.numpy().astype(np.float32)
        data = q8_0_bytes(array) if array.ndim == 2 else array.tobytes()
        kind = TYPE_Q8_0 if array.ndim == 2 else TYPE_F32
        found.append(Tensor(name, kind, array.shape, lambda data=data: (data,)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    tokenizer = Tokenizer.load(Path(__file__).parent / "tokenizer.json")
    model = load_checkpoint(args.checkpoint, quantised=False)
    write_gguf(args.out, metadata(model.shape, tokenizer), tensors(model))
    print(f"{args.out}: {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
