// The worker program, without main: programs differ in the devices and communicators that they
// register before they call it.
#ifndef TANDEM_WORKER_LIFE_WORKER_MAIN_H_
#define TANDEM_WORKER_LIFE_WORKER_MAIN_H_

namespace tandem::worker {

// Dials the coordinator, which tells it everything else, and serves. Returns the exit code; an
// error is one line on stderr.
int WorkerMain(int argc, char** argv);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LIFE_WORKER_MAIN_H_
