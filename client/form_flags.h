// The flags of `tandem generate` that say what form the answer has to have.
#ifndef TANDEM_CLIENT_FORM_FLAGS_H_
#define TANDEM_CLIENT_FORM_FLAGS_H_

#include "client/sampling_flags.h"
#include "common/cli/command.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// Adds them; at most one may be given. The check reads the schema's file. `flags` must outlive the
// parse.
void AddFormFlags(cli::Command& command, SamplingFlags& flags);

// Sets the field of the flag given.
void SetFormField(const SamplingFlags& flags, v1::SamplingParams& out);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_FORM_FLAGS_H_
