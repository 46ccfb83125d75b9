// ScriptedDrafter: guesses what is known to come, for measurements.
#ifndef TANDEM_COORDINATOR_SPECULATION_SCRIPTED_DRAFTER_H_
#define TANDEM_COORDINATOR_SPECULATION_SCRIPTED_DRAFTER_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/speculation/draft_script.h"
#include "coordinator/speculation/drafter.h"

namespace tandem::coordinator {

class ScriptedDrafter : public Drafter {
 public:
  explicit ScriptedDrafter(DraftScript script) : script_(std::move(script)) {}

  std::vector<TokenId> Draft(std::span<const TokenId> tokens, uint32_t most) override;
  bool on_workers() const override { return false; }

 private:
  bool IsRight(size_t position) const;

  const DraftScript script_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_SCRIPTED_DRAFTER_H_
