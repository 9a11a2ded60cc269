#pragma once

#include <functional>
#include <string>

#include "sim/disk.h"
#include "sim/simulation.h"

namespace tacit::sim {

// Exit codes beside those of the body.
inline constexpr int kPowerEnded = 77, kStuck = 78;

struct Life {
  int exit_code = 0;  // the body's, kPowerEnded, or kStuck after a finding
  int signal = 0;     // that ended the process
  std::string words;  // its output, and the finding
};

// Runs the body as a simulated process of its own, whose files are on the disk of the options.
// The disk is as the process has left it, without its descriptors and locks.
Life Live(const Options& options, const std::function<int()>& body);

}  // namespace tacit::sim
