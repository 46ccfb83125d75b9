// The subcommands of `tandem`, one per .cc file.
#ifndef TANDEM_CLIENT_COMMANDS_H_
#define TANDEM_CLIENT_COMMANDS_H_

#include "common/cli/command.h"

namespace tandem::client {

// Prefill and decode speed through real workers, without a server.
void AddBenchCommand(cli::Command& program);
// A conversation; chat_command.h runs it.
void AddChatCommand(cli::Command& program);
// Token ids to text.
void AddDetokenizeCommand(cli::Command& program);
// Embeddings of texts.
void AddEmbedCommand(cli::Command& program);
// Continues prompts.
void AddGenerateCommand(cli::Command& program);
// The content of a model file, and the resources to run it.
void AddInfoCommand(cli::Command& program);
// How long a server's steps take, for simulations of it.
void AddProfileCommand(cli::Command& program);
// Fetches a model from a hub.
void AddPullCommand(cli::Command& program);
// Makes a server forget the prefixes it has cached.
void AddResetCacheCommand(cli::Command& program);
// Log-probabilities of given continuations.
void AddScoreCommand(cli::Command& program);
// A server's counters.
void AddStatsCommand(cli::Command& program);
// Text from stdin to token ids.
void AddTokenizeCommand(cli::Command& program);
// Records what a server does.
void AddTraceCommand(cli::Command& program);
// Waits until a server serves.
void AddWaitCommand(cli::Command& program);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_COMMANDS_H_
