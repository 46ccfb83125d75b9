// The Configure message as a command: names become types, and what can't be understood becomes the
// command's status.
#ifndef TANDEM_WORKER_LIFE_CONFIGURE_CODEC_H_
#define TANDEM_WORKER_LIFE_CONFIGURE_CODEC_H_

#include "worker/life/commands.h"

namespace tandem::v1 {
class Configure;
}

namespace tandem::worker {

ConfigureCommand FromProto(const v1::Configure& message);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LIFE_CONFIGURE_CODEC_H_
