#include "unit/cuda/blas_trial.h"

#include <dlfcn.h>

#include <memory>

#include "base/check.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda::testing {
namespace {

int PutOnStream(void* stream, void (*run)(void*), void (*drop)(void*), void* argument) {
  // The caller keeps the argument if this fails.
  struct Owned {
    void (*drop)(void*);
    void* argument;
    bool is_mine = false;
    ~Owned() {
      if (is_mine) drop(argument);
    }
  };
  const auto owned = std::make_shared<Owned>(drop, argument);
  const int code = runtime::LaunchEmulated(
      "cuBLAS", {}, [owned, run] { run(owned->argument); }, stream);
  owned->is_mine = code == runtime::kSuccess;
  return code;
}

}  // namespace

BlasStandIn& FreshStandIn() {
  static BlasStandIn* const found = [] {
    void* const library = dlopen(TACIT_BLAS_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    TACIT_CHECK(library != nullptr, dlerror());
    void* const function = dlsym(library, kStandInName);
    TACIT_CHECK(function != nullptr, "a library that is not the stand-in");
    return reinterpret_cast<StandInFunction>(function)();
  }();
  *found = {.put = PutOnStream};
  return *found;
}

bool LibraryMustBeThere() {
  FreshStandIn();
  return true;
}

}  // namespace tacit::cuda::testing
