#pragma once

#include <string>

namespace tacit {

// Processor features beyond x86-64-v3, which everything is built for. Only this file asks the
// processor (a rule of tests/house), so that one switch reaches every kernel.
//
// The environment variable TACIT_TEST_NO_AVX512, with any value, turns all of them off, so that
// tests cover the code of older machines (tests/campaign/no-avx512). It can only turn features off.
// Libraries have switches of their own.
struct Cpu {
  bool avx512 = false;       // its parts f, bw, dq and vl
  bool avx512_bf16 = false;  // and dot products of bf16
  bool vaes = false;         // and rounds of AES on whole vectors
};

// Asks the processor at every call: not for inner loops.
Cpu ThisCpu();

// Names the kernels that run on it, for the log: "AVX-512, bf16 products, vector AES", or "AVX2".
std::string KernelText(const Cpu& cpu);

}  // namespace tacit
