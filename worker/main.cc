// tandem_worker: one rank, on the CPU.
#include "worker/control/worker_main.h"

int main(int argc, char** argv) { return tandem::worker::WorkerMain(argc, argv); }
