// The flag of the subcommands that need a vocabulary alone.
#ifndef TANDEM_CLIENT_VOCABULARY_FLAG_H_
#define TANDEM_CLIENT_VOCABULARY_FLAG_H_

#include <string>

#include "common/cli/command.h"

namespace tandem::client {

// --model. `model` must outlive the parse.
inline void AddVocabularyFlag(cli::Command& command, std::string& model) {
  command.Add({model,
               {.flag = "--model,-m",
                .help = "GGUF file; a vocabulary alone is enough",
                .required = true}});
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_VOCABULARY_FLAG_H_
