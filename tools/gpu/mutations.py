"""The mutations of mutate.py. `old` occurs once in `file`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    file: str  # in kernels/cuda
    old: str
    new: str
    suite: str  # in tests/kernels, without _test_emulated


MUTATIONS = [
    # --- reductions and norms ---
    Mutation("wrong lane: a reduction over half a warp", "device/warp.h", "for (int mask = kLanes / 2;", "for (int mask = kLanes / 4;", "rms_norm"),
    Mutation("missing barrier: the sums of warps are read before they are all written", "device/warp.h",
             "room[threadIdx.x / kWarp] = value;\n  __syncthreads();", "room[threadIdx.x / kWarp] = value;", "rms_norm"),
    Mutation("missing barrier: room is used again while others read it", "device/warp.h",
             "__syncthreads();  // the room's previous contents have been read", "", "elementwise"),
    Mutation("missing mask at the end of a row", "norm/norm_row.h", "if (inside_ && i < dim_) f(i, run);", "if (inside_) f(i, run);",
             "rms_norm"),
    Mutation("missing mask behind the last row", "norm/norm_row.h", "inside_(row_ < task.params.rows)",
             "inside_(task.params.rows > 0)", "rms_norm"),
    Mutation("wrong stride between output rows", "norm/norm_row.h", "static_cast<size_t>(row_) * out_stride;",
             "static_cast<size_t>(row_) * dim_;", "rms_norm"),
    # --- rows ---
    Mutation("wrong stride of the rows that are copied", "rows/rows.cu", "p.x + from * p.x_stride + column", "p.x + from * p.dim + column",
             "elementwise"),
    Mutation("wrong width: runs of four where strides are odd", "rows/rows.cu", "InFours({params.dim, params.x_stride, params.y_stride},",
             "InFours({params.dim},", "elementwise"),
    Mutation("missing check: runs of four at odd addresses", "device/floats.h",
             "if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;", "(void)array;", "rms_norm"),
    Mutation("wrong index: rows are copied from their own number", "rows/rows.cu",
             "task.from != nullptr ? static_cast<size_t>(task.from[row]) : row", "static_cast<size_t>(row)", "rows"),
    Mutation("missing mask at the end of a slice of logits", "rows/rows.cu",
             "if (column >= task.starts[rank + 1] - start) return;", "if (column >= task.slice_max) return;", "rows"),
    Mutation("missing mask behind the last row of a grid", "rows/row_grid.h", "if (row < rows_ && column < dim_) f", "if (column < dim_) f",
             "activate"),
    # --- RopeWriteKv ---
    Mutation("missing barrier between angles and rotation", "attention/rope_write_kv.cu",
             "  }\n  __syncthreads();\n  const uint32_t row = task.first_row", "  }\n  const uint32_t row = task.first_row",
             "rope_write_kv"),
    Mutation("missing warp barrier between rotation and copy", "attention/rope_write_kv.cu",
             "__syncwarp();  // other lanes' dims are read below", "", "rope_write_kv"),
    Mutation("missing mask of tokens without a slot", "attention/rope_write_kv.cu", "if (slot < 0) return;", "", "rope_write_kv"),
    Mutation("wrong stride between blocks of pages", "attention/rope_write_kv.cu", "(block * pages.kv_heads + head) * pages.block_size + offset",
             "(block * p.heads + head) * pages.block_size + offset", "rope_write_kv"),
    # --- Attention ---
    Mutation("missing wait for an asynchronous copy", "attention/kv_tiles.h", "WaitForCopies<0>();", "", "attention"),
    Mutation("missing barrier: a tile is used while others still load it", "attention/kv_tiles.h",
             "WaitForCopies<0>();\n    __syncthreads();", "WaitForCopies<0>();", "attention"),
    Mutation("missing mask: positions before the window are seen", "attention/tensor_core.h",
             "all || (at >= range.begin && at < range.end)", "all || at < range.end", "attention"),
    Mutation("missing mask: positions to come are seen", "attention/tensor_core.h",
             "all || (at >= range.begin && at < range.end)", "all || at >= range.begin", "attention"),
    Mutation("wrong lane: the columns of a fragment", "attention/tensor_core.h", "const uint32_t column = Column(j) + lane_ % 4 * 2 + i;",
             "const uint32_t column = Column(j) + lane_ % 4 + i * 4;", "attention"),
    Mutation("missing barrier between weights and the product with V", "attention/tensor_core.h",
             "= p_fragments[t][half];\n        }\n      }\n      __syncthreads();", "= p_fragments[t][half];\n        }\n      }", "attention"),
    Mutation("wrong stride between the parts of splits", "attention/split_kv_merge.cu", "(split * rows + blockIdx.x) * columns",
             "(split * p.tokens + blockIdx.x) * columns", "attention"),
    Mutation("wrong rescale: a new maximum leaves the accumulators alone", "attention/tensor_core.h", "acc_[j][i] *= rescale[i / 2];",
             "acc_[j][i] *= rescale[0] < 0 ? 0 : 1;", "attention"),
    Mutation("misaligned copy: rows that do not begin at multiples of 16 bytes", "attention/attention.cc",
             "if (row_bytes % size == 0 && reinterpret_cast<uintptr_t>(data) % size == 0)",
             "if (reinterpret_cast<uintptr_t>(data) % size == 0)", "attention"),
    Mutation("32-bit offset of a row of a page", "attention/kv_tiles.h", "static_cast<size_t>(source) * from.row_bytes",
             "source * from.row_bytes", "large_memory"),
    # --- Route ---
    Mutation("wrong tie: the highest id of equal scores", "moe/route.cu", "if (key > key_) {", "if (key >= key_) {", "route"),
    Mutation("missing mask of rows that are padding", "moe/route.cu",
             "if (p.lengths != nullptr && p.lengths[blockIdx.x] == 0) return ChooseNone(p);  // the whole block", "", "route"),
    # --- Sample ---
    Mutation("missing barrier: sums of a walk are overwritten while others read them", "sampling/sample.cu",
             "__syncthreads();  // the room's previous sums have been read", "", "sample"),
    Mutation("missing barrier: a histogram is added to before all of it is cleared", "device/select.h",
             "room_.high[i] = 0;\n    }\n    __syncthreads();", "room_.high[i] = 0;\n    }", "sample"),
    Mutation("wrong lane: a scan that counts its own value twice", "device/scan.h",
             "const T of_lanes = __shfl_up_sync(kAllLanes, sum, 1);", "const T of_lanes = sum;", "sample"),
    # --- products ---
    Mutation("missing barrier: sums of warps are read before they are all written", "matmul/gemv_rows.h",
             "= mine;\n    }\n    __syncthreads();", "= mine;\n    }", "backend_matmul"),
    Mutation("wrong index: groups are counted from the matrix's first column", "matmul/gemv_blocks.h", "32 * (task.first_group + g)",
             "32 * g", "backend_matmul"),
    Mutation("wrong lane: a sum over 32 values where 16 are meant", "matmul/quantize_rows.cu",
             "sum = LanesReduce<kLanesPerGroup / 2>(sum, AddOp());", "sum = LanesReduce<kLanesPerGroup>(sum, AddOp());", "backend_matmul"),
    Mutation("missing mask behind the last token", "matmul/head_tiles.cu",
             "if (first + row >= p.row_count || token + input >= p.tokens) return;", "if (first + row >= p.row_count) return;",
             "head_matmul"),
    Mutation("wrong stride between heads", "matmul/head_tiles.cu", "static_cast<size_t>(head) * p.y_head_stride",
             "static_cast<size_t>(head) * p.row_count", "head_matmul"),
    Mutation("missing mask: ids of another rank's slice", "rows/embed.cu", "if (row < 0 || row >= p.table.rows) return nullptr;", "", "rows"),
    Mutation("missing power of two: rows beyond F16 are rounded as they are", "matmul/half_rows.cu",
             "largest < kLargestExponent ? 0 : largest - kLargestExponent + 1", "0", "backend_matmul"),
    Mutation("missing factor: products of such rows keep the power of two", "matmul/half_rows.cu", "y[i] *= factor", "y[i] *= 1.0f",
             "backend_matmul"),
    Mutation("32-bit offset of a row of a weight", "matmul/dequantize_rows.cu", "task.first_row + blockIdx.x * task.row_stride_bytes",
             "task.first_row + static_cast<uint32_t>(blockIdx.x * task.row_stride_bytes)", "large_memory"),
    Mutation("32-bit offset of a row of a token table", "rows/embed.cu", "static_cast<uint64_t>(row) * p.table.row_stride_bytes",
             "static_cast<uint32_t>(row * p.table.row_stride_bytes)", "large_memory"),
    # --- ExpertMatMul and LogProbs ---
    Mutation("32-bit offset of an expert", "moe/expert_choices.h", "expert * projection.expert_stride_bytes",
             "static_cast<uint32_t>(expert * projection.expert_stride_bytes)", "large_memory"),
    Mutation("wrong order: contributions in descending order of experts", "moe/expert_choices.h", "if (other < mine ||",
             "if (other > mine ||", "expert_matmul"),
    Mutation("wrong index: a choice reads the input of another token", "moe/expert_choices.h", "choice : choice / p.top_k;",
             "choice : choice % p.tokens;", "expert_matmul"),
    Mutation("missing barrier between products and their sums", "moe/grouped_gemv_down.cu",
             "parts[of_run * kWarpRows + in_warp] = sum;\n    }\n  }\n  __syncthreads();",
             "parts[of_run * kWarpRows + in_warp] = sum;\n    }\n  }", "expert_matmul"),
    Mutation("missing barrier between counting choices and placing them", "moe/expert_groups.cu",
             "next.AtomicAdd(expert, 1u);\n  }\n  __syncthreads();", "next.AtomicAdd(expert, 1u);\n  }", "expert_matmul"),
    Mutation("missing barrier: the top ids are read while others add theirs", "sampling/log_probs.cu",
             "top_[top_count_.AtomicAdd(0, 1u)] = key;\n    });\n    __syncthreads();",
             "top_[top_count_.AtomicAdd(0, 1u)] = key;\n    });", "log_probs"),
]
