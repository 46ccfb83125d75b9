// ContentOf: the text or token ids of a message that has one of them.
#ifndef TANDEM_COORDINATOR_API_GRPC_CONTENT_OF_H_
#define TANDEM_COORDINATOR_API_GRPC_CONTENT_OF_H_

#include <vector>

#include "coordinator/api/text_or_ids.h"

namespace tandem::coordinator {

template <typename Message>
TextOrIds ContentOf(const Message& proto) {
  if (proto.has_text()) return proto.text();
  if (!proto.has_token_ids()) return {};
  const auto& ids = proto.token_ids().ids();
  return std::vector<TokenId>(ids.begin(), ids.end());
}

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_CONTENT_OF_H_
