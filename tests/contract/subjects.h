#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "base/threads/worker_pool.h"
#include "ops/backend.h"

namespace tacit::ops {

// A backend that the contract is held against.
struct Subject {
  const char* name;
  size_t workers;
  // Null where the machine lacks what it runs on.
  std::function<std::unique_ptr<Backend>(WorkerPool&)> make;
};

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

// The backends of this program: cpu_subjects.cc, or those of the device's tests.
std::vector<Subject> Subjects();

}  // namespace tacit::ops
