#include "common/base/host.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

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

// Reclaimable page cache of the cgroup. It counts as used, and reading a model file fills it.
uint64_t CgroupReclaimable() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string key;
  uint64_t bytes = 0;
  while (file >> key >> bytes) {
    if (key == "inactive_file") return bytes;
  }
  return 0;
}

// Memory left in the cgroup (v2); "max" and absence mean no limit.
uint64_t CgroupAvailable() {
  const uint64_t unlimited = std::numeric_limits<uint64_t>::max();
  uint64_t limit = 0, used = 0;
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  if (!(limit_file >> limit) || !(used_file >> used)) return unlimited;
  used -= std::min(used, CgroupReclaimable());
  return limit > used ? limit - used : 0;
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

uint64_t AvailableMemoryBytes() { return std::min(MemAvailable(), CgroupAvailable()); }

}  // namespace tandem
