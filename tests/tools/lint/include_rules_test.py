import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))
import include_rules  # pylint: disable=wrong-import-position

KNOWN = {"common/base/log.h", "common/tensor/type.h", "common/step/codec.h", "kernels/backend.h",
         "worker/model/decoder.h", "coordinator/engine/engine.h", "coordinator/kvcache/block.h",
         "coordinator/scheduler/plan.h", "client/client.h"}


def problems(path, header, opening='"'):
    return list(include_rules.check_include(path, opening, header, KNOWN))


class IncludeRulesTest(unittest.TestCase):

    def allowed(self, path, header, opening='"'):
        self.assertEqual(problems(path, header, opening), [], f"{path} -> {header}")

    def refused(self, path, header, opening='"'):
        self.assertEqual(len(problems(path, header, opening)), 1, f"{path} -> {header}")

    def test_layers_point_downward(self):
        self.allowed("common/step/codec.cc", "common/base/log.h")
        self.allowed("kernels/cpu/matmul.cc", "common/tensor/type.h")
        self.allowed("worker/model/decoder.cc", "kernels/backend.h")
        self.allowed("coordinator/engine/engine.cc", "coordinator/scheduler/plan.h")
        self.allowed("tests/worker/x_test.cc", "coordinator/engine/engine.h")

    def test_layers_never_point_upward_or_sideways(self):
        self.refused("common/base/log.cc", "kernels/backend.h")
        self.refused("kernels/backend.cc", "common/step/codec.h")
        self.refused("worker/model/decoder.cc", "coordinator/engine/engine.h")
        self.refused("coordinator/engine/engine.cc", "kernels/backend.h")
        self.refused("coordinator/engine/engine.cc", "worker/model/decoder.h")
        self.refused("client/client.cc", "coordinator/engine/engine.h")

    def test_scheduler_and_cache_never_look_at_the_engine(self):
        self.refused("coordinator/scheduler/scheduler.cc", "coordinator/engine/engine.h")
        self.refused("coordinator/kvcache/pool.cc", "coordinator/engine/engine.h")
        self.refused("coordinator/kvcache/pool.cc", "coordinator/scheduler/plan.h")
        self.allowed("coordinator/scheduler/scheduler.cc", "coordinator/kvcache/block.h")

    def test_only_the_clients_bench_sees_the_coordinator(self):
        self.allowed("client/bench/run.cc", "coordinator/engine/engine.h")
        self.refused("client/generate.cc", "coordinator/engine/engine.h")

    def test_generated_code_only_at_edges_and_codecs(self):
        generated = "proto/tandem/v1/generation.grpc.pb.h"
        self.allowed("coordinator/api/service.cc", generated)
        self.allowed("client/client.cc", generated)
        self.allowed("common/step/proto_codec.cc", generated)
        self.refused("coordinator/engine/engine.cc", generated)
        self.refused("common/base/log.cc", "google/protobuf/message.h", "<")
        self.refused("worker/layers/linear.cc", "grpcpp/grpcpp.h", "<")
        self.allowed("common/transport/grpc_channel.cc", "grpcpp/grpcpp.h", "<")

    def test_cuda_and_nccl_have_one_home(self):
        self.allowed("kernels/cuda/matmul.cu", "cuda_runtime.h", "<")
        self.refused("worker/model/decoder.cc", "cuda_runtime.h", "<")
        self.refused("kernels/cpu/matmul.cc", "cublasLt.h", "<")
        self.allowed("worker/comm/nccl_communicator.cc", "nccl.h", "<")
        self.refused("worker/comm/local.cc", "nccl.h", "<")

    def test_paths_are_whole_and_exist(self):
        self.refused("common/base/log.cc", "log.h")
        self.refused("common/base/log.cc", "common/base/nothing.h")
        self.refused("common/base/log.cc", "common/base/log.h", "<")
        self.allowed("common/base/log.cc", "absl/status/status.h")
        self.allowed("tests/common/base/log_test.cc", "gtest/gtest.h")
        self.allowed("common/base/log.cc", "sys/mman.h", "<")

    def test_reads_include_lines(self):
        text = '#pragma x\n#include <a.h>\n  #  include "b/c.h"  // why\n// #include "no.h"\n'
        self.assertEqual(list(include_rules.includes(text)), [(2, "<", "a.h"), (3, '"', "b/c.h")])


if __name__ == "__main__":
    unittest.main()
