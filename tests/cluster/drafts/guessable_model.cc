#include "tests/cluster/drafts/guessable_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/gguf/file.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {
namespace {

// The bytes of a file with F32 tensors, to be changed.
class EditedModel {
 public:
  explicit EditedModel(const std::string& path) : file_(gguf::File::Open(path).value()) {
    const auto bytes = file_.parts().front().bytes;
    bytes_.assign(bytes.begin(), bytes.end());
  }

  const gguf::File& file() const { return file_; }
  // Empty if there is no such tensor.
  std::span<float> Values(std::string_view name) {
    const gguf::TensorInfo* const tensor = file_.FindTensor(name);
    if (tensor == nullptr) return {};
    EXPECT_EQ(tensor->type, tensor::Type::kF32);
    const auto at = tensor->data - file_.parts().front().bytes.data();
    return {reinterpret_cast<float*>(bytes_.data() + at), tensor->values};
  }
  // A head without a matrix of its own reads the model's.
  void Copy(std::string_view from, std::string_view to) {
    if (const auto values = Values(to); !values.empty()) {
      std::ranges::copy(Values(from), values.begin());
    }
  }
  void Write(const std::string& path) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
  }

 private:
  const gguf::File file_;
  std::vector<std::byte> bytes_;
};

bool IsOutputOfALayer(std::string_view name) {
  return name.find("attn_output.") != name.npos || name.find("ffn_down") != name.npos ||
         name.find("ssm_out.") != name.npos;
}

// `head`: what the names of its tensors begin with.
void EditHead(const std::string& head, float of_state, EditedModel& model) {
  std::ranges::fill(model.Values(head + "enorm.weight"), 1.0f);
  std::ranges::fill(model.Values(head + "hnorm.weight"), 1.0f);
  model.Copy("output_norm.weight", head + "shared_head_norm.weight");
  model.Copy("output.weight", head + "shared_head_head.weight");
  model.Copy("token_embd.weight", head + "embed_tokens.weight");
  const auto projection = model.Values(head + "eh_proj.weight");
  const size_t hidden = model.Values("output_norm.weight").size();
  std::ranges::fill(projection, 0.0f);
  for (size_t i = 0; i < hidden; ++i) {
    projection[i * 2 * hidden + i] = 1.0f;
    projection[i * 2 * hidden + hidden + i] = of_state;
  }
}

}  // namespace

std::string WriteGuessable(const std::string& model_name, const Guessable& guessable) {
  EditedModel model(GoldenPath(model_name));
  for (const gguf::TensorInfo& tensor : model.file().tensors()) {
    const std::string_view name = tensor.name;
    if (IsOutputOfALayer(name)) {
      for (float& value : model.Values(name)) value *= guessable.of_layers;
    }
    constexpr std::string_view kProjection = "eh_proj.weight";
    if (name.ends_with(kProjection)) {
      EditHead(std::string(name.substr(0, name.size() - kProjection.size())), guessable.of_state,
               model);
    }
  }
  std::string path = absl::StrCat(::testing::TempDir(), "/", guessable.of_layers, "-",
                                  guessable.of_state, ".gguf");
  model.Write(path);
  return path;
}

}  // namespace tandem::testing
