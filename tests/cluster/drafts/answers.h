// Answers: what a server with speculation and one without it answer to the same requests.
#ifndef TANDEM_TESTS_CLUSTER_DRAFTS_ANSWERS_H_
#define TANDEM_TESTS_CLUSTER_DRAFTS_ANSWERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/config/server_config.h"
#include "coordinator/engine/engine_core.h"

namespace tandem::testing {

// Of the model at `path`, with pages of F16.
config::ServerConfig DraftTestConfig(const std::string& path, int ranks = 1);

struct Answers {
  std::vector<std::vector<TokenId>> tokens;
  coordinator::EngineStats stats;
};

// Of `count` requests one after the other or all at once; some begin alike. Test failures where one
// fails or a block is leaked.
Answers AskAll(const config::ServerConfig& config, float temperature, uint32_t count, bool at_once);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_DRAFTS_ANSWERS_H_
