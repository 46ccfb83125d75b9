// Everything that a GGUF file's bytes can reach: reader, getters, spec, report, and every slice of
// every rank.
//
// gguf_fuzz_test.cc has mutations that suit such files.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"
#include "common/model/slices.h"
#include "common/tensor/dequantize.h"
#include "common/tokenizer/gguf_vocabulary.h"
#include "tests/fuzz/target.h"

namespace tandem {
namespace {

void CheckMessage(const absl::Status& status) {
  TANDEM_CHECK(!status.message().empty());
  TANDEM_CHECK(status.message().find('\n') == absl::string_view::npos) << status;
  TANDEM_CHECK(status.message().size() < 1000) << status.message().size();
}

// Calls every getter on every key: each gives a value or a status.
void ReadMetadata(const gguf::Metadata& metadata) {
  size_t characters = 0;
  for (const gguf::Entry& entry : metadata.entries()) {
    TANDEM_CHECK(metadata.Find(entry.key) == &entry.value);
    for (const absl::Status& status :
         {metadata.GetUint32(entry.key).status(), metadata.GetFloat(entry.key).status(),
          metadata.GetBool(entry.key).status(), metadata.GetString(entry.key).status()}) {
      if (!status.ok()) CheckMessage(status);
    }
    if (const auto strings = metadata.GetStrings(entry.key); strings.ok()) {
      for (const std::string_view text : *strings) characters += text.size();
    }
    if (const auto floats = metadata.GetFloats(entry.key); floats.ok()) floats->ToVector();
    if (const auto ints = metadata.GetInt32s(entry.key); ints.ok()) ints->ToVector();
  }
  TANDEM_CHECK(characters < SIZE_MAX);
}

void ReadSlices(const gguf::File& file, const model::ModelSpec& spec) {
  for (int size = 1; size <= 3; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const auto plan = model::MakeShardPlan(spec, rank, size);
      if (!plan.ok()) continue;
      TANDEM_CHECK_OK(model::ForEachSlice(file, spec, *plan, [](const model::WeightSlice& slice) {
        std::vector<float> row(slice.cols);
        for (uint64_t i = 0; i < slice.rows; ++i) {
          tensor::Dequantize(slice.type, slice.data + i * slice.row_stride_bytes, row.data(),
                             row.size());
        }
        return absl::OkStatus();
      }));
    }
  }
}

// True where the file is a model that can be run.
bool ReadModel(const gguf::File& file, const model::SpecOptions& options) {
  const auto spec = model::BuildSpec(file, options);
  if (!spec.ok()) {
    CheckMessage(spec.status());
    return false;
  }
  const auto info = model::DescribeModel(file, *spec);
  TANDEM_CHECK_OK(info.status());
  TANDEM_CHECK(!model::FormatInfo(*info).empty());
  ReadSlices(file, *spec);
  return true;
}

// True where the bytes are a model that can be run; its draft head, if it has one, is read too.
bool LoadModel(std::span<const std::byte> bytes) {
  const auto file = gguf::File::Parse(bytes);
  if (!file.ok()) {
    CheckMessage(file.status());
    return false;
  }
  ReadMetadata(file->metadata());
  if (const auto made = tokenizer::MakeTokenizerFromGguf(file->metadata()); !made.ok()) {
    CheckMessage(made.status());
  }
  ReadModel(*file, {.load_draft_head = true});
  return ReadModel(*file, {});
}

}  // namespace

namespace fuzz {

bool Take(std::span<const uint8_t> input) { return LoadModel(std::as_bytes(input)); }

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (const char* name : {"ok-base", "ok-align64", "ok-version2"}) {
    std::ifstream in("tests/golden/bad-gguf/" + std::string(name) + ".gguf", std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace fuzz
}  // namespace tandem
