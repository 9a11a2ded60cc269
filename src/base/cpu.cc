#include "base/cpu.h"

#include <cstdlib>

namespace tacit {

Cpu ThisCpu() {
  Cpu cpu;
#if defined(__x86_64__)
  if (std::getenv("TACIT_TEST_NO_AVX512") != nullptr) return cpu;
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  cpu.avx512_bf16 = cpu.avx512 && __builtin_cpu_supports("avx512bf16");
  cpu.vaes = cpu.avx512 && __builtin_cpu_supports("aes") && __builtin_cpu_supports("vaes");
#endif
  return cpu;
}

std::string KernelText(const Cpu& cpu) {
  std::string text = cpu.avx512 ? "AVX-512" : "AVX2";
  if (cpu.avx512_bf16) text += ", bf16 products";
  if (cpu.vaes) text += ", vector AES";
  return text;
}

}  // namespace tacit
