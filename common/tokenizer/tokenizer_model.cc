#include "common/tokenizer/tokenizer_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::tokenizer {
namespace {

constexpr TokenizerModel kModels[] = {
    {.name = "gpt2", .description = "byte-level BPE"},
    {.name = "llama",
     .description = "SentencePiece BPE",
     .encoder = EncoderKind::kSentencePiece,
     .has_merges = false,
     .marks_spaces = true,
     .adds_space_prefix = true,
     .usually_adds_bos = true,
     .bos = 1,
     .eos = 2,
     .unknown = 0},
    // Converters have written add_bos_token false; every engine adds it all the same.
    {.name = "gemma4",
     .description = "BPE over characters",
     .encoder = EncoderKind::kCharacterBpe,
     .marks_spaces = true,
     .always_adds_bos = true,
     .bos = 2,
     .eos = 1,
     .unknown = 3,
     .padding = 0},
};

}  // namespace

const TokenizerModel* FindTokenizerModel(std::string_view name) {
  for (const TokenizerModel& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string SupportedTokenizerModels() {
  std::string list;
  for (const TokenizerModel& model : kModels) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", Sv(model.name), " (", Sv(model.description),
                    ")");
  }
  return list;
}

}  // namespace tandem::tokenizer
