// Loops of nothing but the instructions that a matrix product needs: the arithmetic peaks of a
// machine, which kernels are compared with.
#ifndef TANDEM_TESTS_KERNELS_PEAKS_MIX_H_
#define TANDEM_TESTS_KERNELS_PEAKS_MIX_H_

#include <cstdint>
#include <span>

namespace tandem::kernels::peaks {

struct Mix {
  const char* name;  // "int8:4": operands, and products summed in 16 bits before they are widened
  double ops_per_round;  // a product and its addition are 2
  // Returns a value that depends on all results.
  int64_t (*run)(int64_t rounds);
};

// Of one instruction set each, to be called only on a machine that has it. Operands are in
// registers.
namespace avx2 {
std::span<const Mix> Mixes();
}
namespace avx2_vnni {  // besides avx2: avxvnni
std::span<const Mix> Mixes();
}
namespace avx512 {
std::span<const Mix> Mixes();
}
namespace avx512_vnni {  // besides avx512: avx512vnni
std::span<const Mix> Mixes();
}
namespace avx512_bf16 {  // besides avx512: avx512bf16
std::span<const Mix> Mixes();
}
namespace amx {
// Whether the machine multiplies tiles of int8 and of BF16, and Linux, which this asks, lets this
// process use them.
bool Usable();
std::span<const Mix> Mixes();
}  // namespace amx

}  // namespace tandem::kernels::peaks

#endif  // TANDEM_TESTS_KERNELS_PEAKS_MIX_H_
