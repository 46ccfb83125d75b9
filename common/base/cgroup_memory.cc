#include "common/base/cgroup_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace tandem {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The files of a version.
struct Version {
  const char* mount;
  const char* limit;
  const char* used;
  const char* reclaimable;  // the entry of memory.stat, of the groups within it too
};

constexpr Version kV2{.mount = "/sys/fs/cgroup",
                      .limit = "memory.max",
                      .used = "memory.current",
                      .reclaimable = "inactive_file"};
constexpr Version kV1{.mount = "/sys/fs/cgroup/memory",
                      .limit = "memory.limit_in_bytes",
                      .used = "memory.usage_in_bytes",
                      .reclaimable = "total_inactive_file"};

// Page cache that counts as used: reading a model file fills it.
uint64_t Reclaimable(const std::string& folder, std::string_view entry) {
  std::ifstream file(folder + "/memory.stat");
  std::string key;
  uint64_t bytes = 0;
  while (file >> key >> bytes) {
    if (key == entry) return bytes;
  }
  return 0;
}

// "max" and absence mean no limit; v1 has a number beyond any memory instead.
uint64_t LeftIn(const std::string& folder, const Version& version) {
  uint64_t limit = 0, used = 0;
  std::ifstream limit_file(folder + "/" + version.limit);
  std::ifstream used_file(folder + "/" + version.used);
  if (!(limit_file >> limit) || !(used_file >> used)) return kUnlimited;
  used -= std::min(used, Reclaimable(folder, version.reclaimable));
  return limit > used ? limit - used : 0;
}

// Of the group at `path` and all around it, up to the mount's root. A container may see only its
// own group there, and yet its path as the host has it: folders that are not there limit nothing.
uint64_t LeftUpwards(const std::string& mount, std::string path, const Version& version) {
  if (path.find("/..") != std::string::npos) path.clear();  // beyond what can be seen
  uint64_t left = kUnlimited;
  while (true) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    left = std::min(left, LeftIn(mount + path, version));
    if (path.empty()) return left;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool HasMemory(std::string_view controllers) {
  for (const auto name : absl::StrSplit(Sv(controllers), ',')) {
    if (name == "memory") return true;
  }
  return false;
}

}  // namespace

uint64_t CgroupMemoryLeft(const std::string& root) {
  uint64_t left = kUnlimited;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // A number, the controllers of a v1 hierarchy, the path; v2 has the number 0 and no
    // controllers.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool is_v2 = parts[0] == "0" && parts[1].empty();
    if (!is_v2 && !HasMemory(parts[1])) continue;
    const Version& version = is_v2 ? kV2 : kV1;
    left = std::min(left, LeftUpwards(root + version.mount, parts[2], version));
  }
  return left;
}

}  // namespace tandem
