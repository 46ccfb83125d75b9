// The worker program, without main: programs differ in the devices and communicators that they
// register before they call it.
#ifndef TANDEM_WORKER_CONTROL_WORKER_MAIN_H_
#define TANDEM_WORKER_CONTROL_WORKER_MAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "worker/control/worker_loop.h"

namespace tandem::worker {

// Serves the stream's commands to their end. If the device is broken by then, the process ends here
// with one line on stderr: freeing the device's memory could wait for ever.
absl::Status ServeCommands(std::unique_ptr<ControlStream> stream, WorkerOverrides overrides);

// Connects to the coordinator, which configures the worker, and serves. Returns the exit code; an
// error is one line on stderr. `devices` describes the devices visible to this process, for
// display; none or empty: only the CPU.
int WorkerMain(int argc, char** argv, const std::function<std::string()>& devices = nullptr);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_WORKER_MAIN_H_
