// Every file of the golden folder bad-gguf, as its index expects: open it, read the model, walk all
// slices of all ranks.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"
#include "common/model/slices.h"
#include "common/tensor/dequantize.h"

namespace tandem::model {
namespace {

const std::string kFolder = "tests/golden/bad-gguf/";

struct BadFile {
  std::string file;
  std::string defect;
  std::string expect;
};

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.defect; }

std::vector<BadFile> AllFiles() {
  std::ifstream in(kFolder + "index.json");
  const auto index = nlohmann::json::parse(in);
  std::vector<BadFile> all;
  for (const auto& entry : index["files"]) {
    all.push_back({entry["file"], entry["defect"], entry["expect"]});
  }
  return all;
}

// Reads every value of a slice.
absl::Status ReadSlice(const WeightSlice& slice) {
  std::vector<float> row(slice.cols);
  for (uint64_t i = 0; i < slice.rows; ++i) {
    tensor::Dequantize(slice.type, slice.data + i * slice.row_stride_bytes, row.data(), row.size());
  }
  return absl::OkStatus();
}

absl::Status LoadCompletely(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(path));
  TANDEM_ASSIGN_OR_RETURN(const ModelSpec spec, BuildSpec(file));
  TANDEM_ASSIGN_OR_RETURN(const ModelInfo info, DescribeModel(file, spec));
  for (const ParallelInfo& parallel : info.parallel) {
    for (int rank = 0; parallel.possible && rank < parallel.size; ++rank) {
      TANDEM_ASSIGN_OR_RETURN(const ShardPlan plan, MakeShardPlan(spec, rank, parallel.size));
      TANDEM_RETURN_IF_ERROR(ForEachSlice(file, spec, plan, ReadSlice));
    }
  }
  return absl::OkStatus();
}

class BadGgufTest : public testing::TestWithParam<BadFile> {};

TEST_P(BadGgufTest, IsAcceptedOrRefusedAsExpected) {
  const absl::Status status = LoadCompletely(kFolder + GetParam().file);
  if (GetParam().expect == "accept") {
    EXPECT_TRUE(status.ok()) << status;
  } else if (GetParam().expect == "reject") {
    EXPECT_FALSE(status.ok());
  } else {
    EXPECT_EQ(GetParam().expect, "either");
  }
  if (!status.ok()) {
    const std::string message(status.message());
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_EQ(message.find(".gguf"), std::string::npos) << "the caller adds the path: " << message;
  }
}

std::string TestName(const testing::TestParamInfo<BadFile>& param) {
  std::string name = param.param.file.substr(0, param.param.file.find(".gguf"));
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, BadGgufTest, testing::ValuesIn(AllFiles()), TestName);

TEST(BadGgufIndexTest, HasAllFiles) { EXPECT_EQ(AllFiles().size(), 80u); }

}  // namespace
}  // namespace tandem::model
