// ModelConfig: the model, and settings that override it.
#ifndef TANDEM_COMMON_CONFIG_MODEL_CONFIG_H_
#define TANDEM_COMMON_CONFIG_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "common/config/field.h"
#include "common/config/lora_module.h"
#include "common/model/spec_options.h"

namespace tandem::config {

template <>
struct EnumNames<model::RopeScalingKind> {
  static constexpr auto& kNames = model::kRopeScalingNames;
};

struct ModelConfig {
  std::string path{};
  std::string draft_path{};
  model::SpecOptions spec{};
  bool expert_parallel = false;
  std::vector<LoraModule> lora_modules{};

  void ForEach(FieldList& visit) {
    visit.BeginSection("Model");
    visit(path, {.flag = "--model,-m",
                 .help = "GGUF file, or hf:OWNER/REPO[@REVISION][:QUANT]",
                 .reload = true,
                 .required = true});
    visit(
        draft_path,
        {.flag = "--draft-model",
         .help = "GGUF file, or hf:OWNER/REPO[@REVISION][:QUANT], of a smaller model with the same "
                 "vocabulary, for --speculation draft",
         .reload = true});
    visit(spec.max_model_len,
          {.flag = "--max-model-len",
           .help = "prompt and generated tokens of a sequence (0: the model's context length)",
           .least = 0,
           .most = 2147483647,
           .reload = true});
    visit(spec.rope_scaling,
          {.flag = "--rope-scaling", .help = "instead of what the file says", .reload = true});
    visit(spec.rope_scale, {.flag = "--rope-scale",
                            .help = "how much farther positions reach (0: what the file says)",
                            .least = 0,
                            .most = 1e6,
                            .reload = true});
    visit(spec.load_draft_head,
          {.flag = "--load-draft-head",
           .help = "load the file's draft head and run it with every token; --speculation mtp "
                   "loads it by itself",
           .reload = true});
    visit(expert_parallel, {.flag = "--expert-parallel",
                            .help = "give ranks whole experts instead of columns of every expert",
                            .reload = true});
    visit(lora_modules,
          {.flag = "--lora-modules",
           .help = "NAME=FILE of LoRA adapters in GGUF, which requests name as their model",
           .reload = true});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_MODEL_CONFIG_H_
