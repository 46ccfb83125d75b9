#include "common/base/host.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/base/cgroup_memory.h"

namespace tandem {
namespace {

std::string ReadLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string ReadLink(const char* path) {
  char target[128];
  const ssize_t length = readlink(path, target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : std::string();
}

uint64_t MemAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

}  // namespace

std::string HostName() {
  char name[256];
  if (gethostname(name, sizeof(name)) != 0) return "";
  return std::string(name, strnlen(name, sizeof(name)));
}

std::string HostId() {
  return ReadLine("/proc/sys/kernel/random/boot_id") + "/" + ReadLink("/proc/self/ns/pid");
}

uint64_t AvailableMemoryBytes() { return std::min(MemAvailable(), CgroupMemoryLeft()); }

}  // namespace tandem
