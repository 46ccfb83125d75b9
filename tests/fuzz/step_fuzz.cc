// Frames of the step channel: what decodes encodes to the same bytes, and validation takes whatever
// decodes.
#include "common/base/check.h"
#include "common/step/block_tables.h"
#include "common/step/codec.h"
#include "tests/common/step/example_step.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

template <typename Message>
void CheckSame(const Message& message, std::span<const uint8_t> input) {
  Bytes again;
  step::Serialize(message, again);
  TANDEM_CHECK(Bytes(input.begin(), input.end()) == again) << "encodes to other bytes";
}

}  // namespace

bool Take(std::span<const uint8_t> input) {
  if (const auto step = step::ParseDescriptor(input); step.ok()) {
    CheckSame(*step, input);
    step::BlockTables tables = step::ExampleTables();
    if (step::Validate(*step, step::ExampleLimits(), tables).ok()) tables.Apply(*step);
    TANDEM_CHECK(!step::DebugString(*step).empty());
    return true;
  }
  const auto result = step::ParseResult(input);
  if (result.ok()) CheckSame(*result, input);
  return result.ok();
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds(4);
  step::StepDescriptor example = step::ExampleStep();
  step::Serialize(example, seeds[0]);
  example.skips_guesser = true;
  step::Serialize(example, seeds[3]);
  step::StepResult result = step::ExampleResult();
  step::Serialize(result, seeds[1]);
  result.status = absl::InternalError("broken");
  step::Serialize(result, seeds[2]);
  return seeds;
}

}  // namespace tandem::fuzz
