#pragma once

// Marks a function that runs on the CPU and, where nvcc compiles it, in kernels too. Such a
// function calls only other marked functions and compiler built-ins, so that both sides give equal
// bits.
#if defined(__CUDACC__)
#define TACIT_DEVICE __host__ __device__
#else
#define TACIT_DEVICE
#endif

// Stands before a loop that kernels must unroll to keep its arrays in registers.
#if defined(__CUDACC__)
#define TACIT_UNROLL _Pragma("unroll")
#else
#define TACIT_UNROLL
#endif
