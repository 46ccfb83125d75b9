// The flags of `tandem generate` that change logits by the tokens so far: penalties, biases, bad
// words, DRY.
#ifndef TANDEM_CLIENT_LOGIT_FLAGS_H_
#define TANDEM_CLIENT_LOGIT_FLAGS_H_

#include "client/sampling_flags.h"
#include "common/cli/command.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// Adds them with checks of their ranges. `flags` must outlive the parse.
void AddLogitFlags(cli::Command& command, SamplingFlags& flags);

// Sets the fields of the flags given.
void SetLogitFields(const SamplingFlags& flags, v1::SamplingParams& out);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LOGIT_FLAGS_H_
