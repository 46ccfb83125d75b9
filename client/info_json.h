// ModelInfo as JSON, for programs.
#ifndef TANDEM_CLIENT_INFO_JSON_H_
#define TANDEM_CLIENT_INFO_JSON_H_

#include <string>

#include "common/model/info.h"

namespace tandem::client {

// One object, indented, without a newline at its end. Sizes are bytes, unless named otherwise.
std::string ToJson(const model::ModelInfo& info);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_INFO_JSON_H_
