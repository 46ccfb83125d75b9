// The parameters of every op: raw pointers, shapes and sizes; no tensors, no protos, no ownership.
//
// Activations are of the type of Backend::UseActivations, F32 so far. Pointers point into the
// backend's own memory (Backend::Allocate) unless said otherwise, and must stay valid until WAIT.
// Rows are dense unless a stride (in elements) is given. T = tokens of the step, S = sequences.
#ifndef TANDEM_KERNELS_OPS_H_
#define TANDEM_KERNELS_OPS_H_

#include "kernels/ops/activate.h"
#include "kernels/ops/array.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_matmul.h"
#include "kernels/ops/composite.h"
#include "kernels/ops/embed.h"
#include "kernels/ops/expert_matmul.h"
#include "kernels/ops/feed_forward.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/head_matmul.h"
#include "kernels/ops/kv_pages.h"
#include "kernels/ops/log_probs.h"
#include "kernels/ops/logits.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/matmul_add.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/norm_matmul.h"
#include "kernels/ops/pool_rows.h"
#include "kernels/ops/qkv.h"
#include "kernels/ops/recurrent_batch.h"
#include "kernels/ops/rope_write_kv.h"
#include "kernels/ops/route.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/sample.h"
#include "kernels/ops/scatter_runs.h"
#include "kernels/ops/short_conv.h"
#include "kernels/ops/sum_squares.h"
#include "kernels/ops/weight.h"

#endif  // TANDEM_KERNELS_OPS_H_
