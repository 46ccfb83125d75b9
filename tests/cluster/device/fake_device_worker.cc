// A worker whose "cuda" is a device made of the reference backend: all of a device's way of working
// in real processes, without a GPU.
#include <memory>

#include "tests/worker/runtime/fake_device.h"
#include "worker/control/worker_main.h"

int main(int argc, char** argv) {
  tandem::worker::RegisterFakeDevice({}, std::make_shared<tandem::worker::FakeDeviceNotes>());
  return tandem::worker::WorkerMain(argc, argv);
}
