// tandem_worker: one rank, on the CPU.
#include "worker/life/worker_main.h"

int main(int argc, char** argv) { return tandem::worker::WorkerMain(argc, argv); }
