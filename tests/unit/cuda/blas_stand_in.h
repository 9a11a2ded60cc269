#pragma once

#include <cstddef>
#include <cstdint>

// A library that stands in for cuBLAS on the emulated device: blas_stand_in.cc is built as
// libcublas.so.13, with the functions that cuda/device/blas.cc looks up there, and one more by
// which a test and it find each other.
namespace tacit::cuda::testing {

enum class BlasFault {
  kNone,
  kFails,        // products are refused
  kNoHandle,     // there is none to be had
  kIgnoresBeta,  // as if it were 0
  kReadsAlways,  // c counts even if it is 0
  kOtherColumn,  // b's columns are each one further on
};

struct BlasStandIn {
  // Has `run(argument)` done by the stream in its turn, as often as a graph comes to it, and in the
  // end `drop(argument)`, which is the caller's if this fails. Gives back an error's number.
  int (*put)(void* stream, void (*run)(void*), void (*drop)(void*), void* argument) = nullptr;
  BlasFault fault = BlasFault::kNone;

  int handles = 0;       // that are open
  uint64_t asked = 0;    // products that were put on a stream
  uint64_t done = 0;     // products that were computed
  uint64_t misused = 0;  // calls that cuBLAS would refuse, or give other bits for
  size_t workspace_bytes = 0;
};

// The name of the function that returns it.
inline constexpr char kStandInName[] = "TacitBlasStandIn";
using StandInFunction = BlasStandIn* (*)();

}  // namespace tacit::cuda::testing
