// What libFuzzer calls. With TANDEM_FUZZ_SEEDS=FOLDER the program writes the target's seeds there
// and exits.
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("TANDEM_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const tandem::fuzz::Bytes& seed : tandem::fuzz::Seeds()) {
    std::ofstream out(std::string(folder) + "/seed-" + std::to_string(number++), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()),
              static_cast<std::streamsize>(seed.size()));
    if (!out.flush()) std::exit(1);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::fuzz::Take({data, size});
  return 0;
}
