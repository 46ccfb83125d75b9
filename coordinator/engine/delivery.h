// Delivery: an update on its way from the engine to a request's stream.
#ifndef TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
#define TANDEM_COORDINATOR_ENGINE_DELIVERY_H_

#include <memory>

#include "coordinator/engine/request.h"

namespace tandem::coordinator {

struct Delivery {
  RequestHandle handle;
  std::shared_ptr<TokenStream> stream;
  StreamUpdate update;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_DELIVERY_H_
