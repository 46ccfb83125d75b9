// What the compiler calls where kernels, built with -fsanitize=alignment, access memory at an
// address that is not a multiple of the type's alignment, as a GPU demands (CUDA C++ Programming
// Guide, "Device Memory Accesses"). x86 would allow it. Under a sanitizer of the whole program it
// comes before the sanitizer's own.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/cuda_emulation/execution.h"

namespace tandem::emulation {
namespace {

// As the compiler lays them out (libsanitizer's ubsan_handlers.h, version 1 of the interface).
struct TypeDescriptor {
  uint16_t kind;
  uint16_t info;
  char name[1];
};
struct TypeMismatch {
  const char* file;
  uint32_t line;
  uint32_t column;
  const TypeDescriptor* type;
  uint8_t log_alignment;
  uint8_t access;  // 0: load, 1: store, others: a reference or a member
};

}  // namespace

[[noreturn]] void OnMisaligned(const TypeMismatch& where, uintptr_t address) {
  const uint64_t alignment = uint64_t{1} << where.log_alignment;
  std::string what =
      absl::StrCat("misaligned access: ", where.access == 1 ? "store to " : "load from ",
                   "an address that is ", address % alignment, " past a multiple of ", alignment,
                   ", as ", where.type->name, ", at ", where.file, ":", where.line);
  if (InKernel()) Fail(std::move(what));  // nothing on this stack is destroyed
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace tandem::emulation

extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(void* where, uintptr_t address) {
  tandem::emulation::OnMisaligned(*static_cast<const tandem::emulation::TypeMismatch*>(where),
                                  address);
}
