"""Tests of make_random_model: types of the mix, vocabulary, and that a file is as long as its table says."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import numpy as np  # noqa: E402

import make_random_model as tool  # noqa: E402
import random_blocks  # noqa: E402

QWEN2_HALF_BILLION = tool.Shape(896, 24, 14, 2, 4864, 151936, 32768, tied=True)


class Types(unittest.TestCase):
    def test_mix_of_the_default_shape(self) -> None:
        def kind(name: str, columns: int, layer: int = 0) -> str:
            return tool.matrix_type(name, columns, layer, QWEN2_HALF_BILLION, "q4_k_m").name

        self.assertEqual(kind("token_embd", 896), "Q8_0")
        self.assertEqual(kind("attn_q", 896), "Q5_0")
        self.assertEqual(kind("attn_v", 896, layer=0), "Q8_0")
        self.assertEqual(kind("attn_v", 896, layer=3), "Q5_0")
        downs = [kind("ffn_down", 4864, layer) for layer in range(24)]
        self.assertEqual(downs.count("Q6_K"), 12)
        self.assertEqual(downs.count("Q4_K"), 12)
        self.assertEqual(downs[:6], ["Q6_K", "Q6_K", "Q6_K", "Q4_K", "Q4_K", "Q6_K"])

    def test_q8_0_blocks_have_the_deviation_asked_for(self) -> None:
        blocks = random_blocks.q8_0_blocks(np.random.default_rng(1), 4000, 0.03)
        scale = blocks[:, :2].copy().view("<f2").astype(np.float64)
        weights = scale * blocks[:, 2:].copy().view(np.int8)
        self.assertAlmostEqual(weights.std(), 0.03, delta=0.003)
        self.assertAlmostEqual(weights.mean(), 0.0, delta=0.001)

    def test_f16_values_have_the_deviation_asked_for(self) -> None:
        weights = random_blocks.f16_values(np.random.default_rng(1), 4000, 0.03).copy().view("<f2").astype(np.float64)
        self.assertEqual(len(weights), 4000)
        self.assertAlmostEqual(weights.std(), 0.03, delta=0.002)

    def test_bf16_values_have_the_deviation_asked_for(self) -> None:
        halves = random_blocks.bf16_values(np.random.default_rng(1), 4000, 0.03).copy().view("<u2").ravel()
        weights = (halves.astype("<u4") << 16).view("<f4")
        self.assertEqual(len(weights), 4000)
        self.assertAlmostEqual(weights.std(), 0.03, delta=0.002)


    def test_nvfp4_blocks_have_the_deviation_asked_for(self) -> None:
        codes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
        for deviation in (0.03, 2.0):  # scales below the normal numbers, and above
            blocks = random_blocks.nvfp4_blocks(np.random.default_rng(1), 2000, deviation)
            exponent, mantissa = blocks[:, :4] >> 3, blocks[:, :4] & 7
            scale = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent.astype(int) - 10))
            bytes_of = blocks[:, 4:].reshape(-1, 4, 8)
            weights = scale[:, :, None] * codes[np.concatenate((bytes_of & 15, bytes_of >> 4), axis=2)]
            self.assertAlmostEqual(weights.std(), deviation, delta=0.1 * deviation)

    def test_nvfp4_matrices_have_scales(self) -> None:
        shape = tool.Shape(256, 1, 4, 2, 512, 400, 512, tied=False, mixture=tool.Mixture(4, 2, 256, 256))
        tensors = {tensor.name: tensor for tensor in tool.RandomTensors(shape, "nvfp4", 1).all()}
        self.assertEqual(tensors["blk.0.ffn_up_exps.scale"].shape, (4,))
        self.assertEqual(tensors["blk.0.attn_q.scale"].shape, (1,))
        self.assertIn("output.scale", tensors)
        self.assertNotIn("token_embd.scale", tensors)
        self.assertNotIn("output_norm.scale", tensors)


class Vocabulary(unittest.TestCase):
    def test_full_size(self) -> None:
        tokens, types, merges = tool.make_vocabulary(151936)
        self.assertEqual(len(tokens), 151936)
        self.assertEqual(len(set(tokens)), 151936)
        self.assertEqual(len(merges), 151387)
        self.assertEqual(tokens[types.index(tool.CONTROL_TOKEN)], "<|endoftext|>")
        known = set(tokens)
        for merge in merges:
            left, right = merge.split(" ")
            self.assertTrue(left in known and right in known and left + right in known)

    def test_refuses_a_size_without_room(self) -> None:
        with self.assertRaises(ValueError):
            tool.make_vocabulary(258)


class Files(unittest.TestCase):
    def test_writes_the_same_file_for_the_same_seed(self) -> None:
        sizes = "--hidden 256 --layers 8 --heads 4 --kv-heads 2 --ffn 512 --vocabulary 400".split()
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, (kind, seed) in enumerate((("q4_k_m", "1"), ("q4_k_m", "1"), ("q4_k_m", "2"), ("q8_0", "1"))):
                path = Path(folder) / f"{i}.gguf"
                subprocess.run([sys.executable, ROOT / "tools" / "make_random_model.py", "--out", path,
                                "--type", kind, "--seed", seed, *sizes], check=True, stdout=subprocess.DEVNULL)
                files.append(path.read_bytes())
        self.assertEqual(files[0], files[1])
        self.assertEqual(len(files[0]), len(files[2]))
        self.assertNotEqual(files[0], files[2])
        self.assertEqual({data[:8] for data in files}, {b"GGUF\x03\x00\x00\x00"})
        self.assertGreater(len(files[3]), len(files[0]))

    def test_a_draft_model_has_the_models_first_layers(self) -> None:
        small = tool.Shape(256, 16, 4, 2, 512, 400, 512, tied=False, faint_from=2, faintness=0.25)
        for mix in tool.FILE_TYPES:
            def tensors(shape: tool.Shape) -> dict[str, tuple]:
                return {one.name: (one.type.name, b"".join(one.data()))
                        for one in tool.RandomTensors(shape, mix, 1).all()}

            model = tensors(small)
            draft = tensors(tool.replace(small, layers=2, first_of=16, faint_from=None))
            plain = tensors(tool.replace(small, faint_from=None))
            self.assertEqual(draft, {name: model[name] for name in draft})
            self.assertEqual({name for name in model if model[name] != plain[name]},
                             {f"blk.{layer}.{part}.weight" for layer in range(2, 16)
                              for part in ("attn_output", "ffn_down")})

    def test_a_hybrid_has_a_delta_net_in_all_but_each_intervals_last_layer(self) -> None:
        shape = tool.DEFAULTS["qwen35"]
        tensors = {tensor.name: tensor.shape for tensor in tool.RandomTensors(shape, "q8_0", 1).all()}
        self.assertEqual(tensors["blk.2.attn_qkv.weight"], (6144, 1024))
        self.assertEqual(tensors["blk.2.ssm_conv1d.weight"], (6144, 4))
        self.assertEqual(tensors["blk.3.attn_q.weight"], (4096, 1024))
        self.assertEqual(sum(name.endswith(".ssm_a") for name in tensors), 18)
        sections = [item.value for item in tool.hybrid_metadata(shape) if item.key.endswith("sections")]
        self.assertEqual(sections, [[11, 11, 10, 0]])

    def test_a_mixture_has_experts_in_every_layer(self) -> None:
        shape = tool.DEFAULTS["qwen35moe"]
        tensors = {tensor.name: tensor.shape for tensor in tool.RandomTensors(shape, "q8_0", 1).all()}
        self.assertEqual(tensors["blk.0.ffn_gate_exps.weight"], (32, 512, 1024))
        self.assertEqual(tensors["blk.3.ffn_down_shexp.weight"], (1024, 512))
        self.assertEqual(tensors["blk.3.ffn_gate_inp.weight"], (32, 1024))
        self.assertNotIn("blk.0.ffn_gate.weight", tensors)
        keys = {item.key: item.value for item in tool.make_metadata(shape, "q8_0")}
        self.assertEqual(keys["general.architecture"], "qwen35moe")
        self.assertEqual(keys["qwen35moe.expert_used_count"], 4)

    def test_a_draft_head_is_one_more_layer_that_reads_the_embedding(self) -> None:
        shape = tool.replace(tool.DEFAULTS["glm4moe"], layers=3)
        tensors = {tensor.name: tensor for tensor in tool.RandomTensors(shape, "q8_0", 1).all()}
        self.assertEqual(tensors["blk.0.ffn_gate.weight"].shape, (4096, 1024))
        self.assertEqual(tensors["blk.3.ffn_gate_exps.weight"].shape, (8, 1024, 1024))
        self.assertNotIn("blk.4.attn_norm.weight", tensors)
        projection = np.frombuffer(b"".join(tensors["blk.3.nextn.eh_proj.weight"].data()), "<f4").reshape(1024, 2048)
        self.assertTrue((projection[:, :1024] == np.eye(1024)).all())
        self.assertFalse(projection[:, 1024:].any())
        keys = {item.key: item.value for item in tool.make_metadata(shape, "q8_0")}
        self.assertEqual((keys["glm4moe.block_count"], keys["glm4moe.nextn_predict_layers"]), (4, 1))

    def test_a_hybrids_draft_head_has_attention(self) -> None:
        shape = tool.replace(tool.DEFAULTS["qwen35"], layers=2, draft_head=True)
        names = {tensor.name for tensor in tool.RandomTensors(shape, "q8_0", 1).all()}
        self.assertIn("blk.1.ssm_out.weight", names)
        self.assertNotIn("blk.2.ssm_out.weight", names)
        self.assertLessEqual({"blk.2.attn_output.weight", "blk.2.nextn.eh_proj.weight"}, names)
        keys = {item.key: item.value for item in tool.make_metadata(shape, "q8_0")}
        self.assertEqual((keys["qwen35.block_count"], keys["qwen35.nextn_predict_layers"]), (3, 1))


if __name__ == "__main__":
    unittest.main()
