// Everything that a GGUF file's bytes can reach: reader, getters, spec, report, and every slice of
// every rank; and, as an adapter of a small model, its changes of every rank.
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
#include "common/model/adapter.h"
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

const model::ModelSpec& AdaptedSpec() {
  static const model::ModelSpec spec = [] {
    const auto file = gguf::File::Open("tests/golden/arch/llama/model.gguf");
    TANDEM_CHECK_OK(file.status());
    return model::BuildSpec(*file, {}).value();
  }();
  return spec;
}

// True where the bytes are an adapter of that model.
bool LoadAdapter(std::span<const std::byte> bytes) {
  auto file = gguf::File::Parse(bytes);
  if (!file.ok()) return false;
  const model::ModelSpec& spec = AdaptedSpec();
  const auto adapter = model::ReadAdapter(*std::move(file), spec);
  if (!adapter.ok()) {
    CheckMessage(adapter.status());
    return false;
  }
  for (int rank = 0; rank < 2; ++rank) {
    const auto plan = model::MakeShardPlan(spec, rank, 2);
    TANDEM_CHECK_OK(plan.status());
    for (const model::AdaptedMatrix& matrix : adapter->matrices) {
      const model::AdapterSlice slice = model::ReadSlice(matrix, spec, *plan);
      TANDEM_CHECK(slice.a.size() == size_t{slice.rank} * slice.cols);
      TANDEM_CHECK(slice.b.size() == size_t{slice.rows} * slice.rank);
    }
  }
  return true;
}

}  // namespace

namespace fuzz {

bool Take(std::span<const uint8_t> input) {
  const bool adapts = LoadAdapter(std::as_bytes(input));
  return LoadModel(std::as_bytes(input)) || adapts;
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (const char* name :
       {"bad-gguf/ok-base", "bad-gguf/ok-align64", "bad-gguf/ok-version2", "lora/llama/few"}) {
    std::ifstream in("tests/golden/" + std::string(name) + ".gguf", std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace fuzz
}  // namespace tandem
