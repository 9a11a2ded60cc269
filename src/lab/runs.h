#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace tacit::lab {

// Called with the finished share of a run, from its thread.
using TellShare = std::function<void(double share)>;

// Runs to be made.
struct Runs {
  size_t number = 0;
  std::function<std::string(size_t run)> name;  // for the progress line and for errors
  std::function<Status(size_t run, const TellShare& tell)> make;
};

// Makes all runs, `jobs` at a time. `show` draws their progress on the terminal. After the first
// failure no further runs begin; the error names the run.
Status MakeRuns(const Runs& runs, uint32_t jobs, bool show);

}  // namespace tacit::lab
