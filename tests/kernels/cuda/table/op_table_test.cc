// The table at toy sizes on the emulated device: every case can be set up, captured and replayed.
#include "tests/kernels/cuda/table/op_table.h"

#include <gtest/gtest.h>

#include <set>

#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::kernels {
namespace {

class OpTableTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTableTest, EveryCaseRuns) {
  const auto seconds = TimeCase(GetParam(), ToySizes(), &cuda::MakeEmulatedBackend);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_GT(*seconds, 0);
  EXPECT_GT(GetParam().bytes, 0);
}

std::string Name(const testing::TestParamInfo<OpCase>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.op;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, OpTableTest, testing::ValuesIn(AllCases(ToySizes())), Name);

TEST(OpTable, HasEveryOp) {
  std::set<std::string> ops;
  for (const OpCase& one : AllCases(TableSizes())) ops.insert(one.op.substr(0, one.op.find(' ')));
  EXPECT_EQ(ops, (std::set<std::string>{"Activate", "AddRows", "Attention", "CopyRows", "Embed",
                                        "ExpertMatMul", "GatherRows", "HeadMatMul", "LayerNorm",
                                        "LogProbs", "MatMul", "Qkv", "RmsNorm", "RopeWriteKv",
                                        "Route", "Sample", "SoftCap", "UnshardLogits"}));
}

TEST(OpTable, FloorIsTheLargerOfBytesAndProducts) {
  const cuda::Ceilings ceilings{.read_bytes_per_s = 1e12, .flops_per_s = 1e15};
  EXPECT_DOUBLE_EQ(FloorSeconds({.op = "a", .shape = "", .bytes = 2e12, .flops = 1e15}, ceilings),
                   2);
  EXPECT_DOUBLE_EQ(FloorSeconds({.op = "a", .shape = "", .bytes = 2e12, .flops = 3e15}, ceilings),
                   3);
}

TEST(OpTable, RowHasTimeFloorAndShare) {
  const cuda::Ceilings ceilings{
      .read_bytes_per_s = 2e12, .copy_bytes_per_s = 4e12, .flops_per_s = 8e14};
  const std::string row =
      TableRow({.op = "RmsNorm", .shape = "64 x 4096", .bytes = 4e6, .flops = 0}, 2e-6, ceilings);
  EXPECT_NE(row.find("2.00"), std::string::npos) << row;
  EXPECT_NE(row.find("1.00"), std::string::npos) << row;
  EXPECT_NE(row.find("2000"), std::string::npos) << row;
  EXPECT_NE(row.find("50%"), std::string::npos) << row;
}

TEST(Ceilings, AreMeasuredOnTheEmulatedDevice) {
  const auto ceilings = cuda::MeasureCeilings(ToySizes().copy_bytes, ToySizes().matrix);
  ASSERT_TRUE(ceilings.ok()) << ceilings.status();
  EXPECT_GT(ceilings->read_bytes_per_s, 0);
  EXPECT_GT(ceilings->copy_bytes_per_s, 0);
  EXPECT_GT(ceilings->flops_per_s, 0);
}

}  // namespace
}  // namespace tandem::kernels
