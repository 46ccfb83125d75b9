// Everything that a GGUF file's bytes can reach: reader, getters, spec, report, and every slice of
// every rank.
//
// With clang: clang++ -fsanitize=fuzzer,address ... tests/fuzz/gguf_fuzz.cc. gguf_fuzz_test.cc
// drives it without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/check.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"
#include "common/model/slices.h"
#include "common/tensor/dequantize.h"

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
  ReadModel(*file, {.load_draft_head = true});
  return ReadModel(*file, {});
}

}  // namespace

// For the driver. The bytes are copied to memory of exactly their size, where a sanitizer sees the
// first byte too far.
bool FuzzGguf(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> copy(bytes, bytes + size);
  return LoadModel(copy);
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::FuzzGguf(data, size);
  return 0;
}
