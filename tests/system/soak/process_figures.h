#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace tacit::test {

// The holdings of a process at a moment.
struct ProcessFigures {
  double resident_mb = 0;
  double descriptors = 0;
  double threads = 0;
};

// The kernel's account; nothing when there is no such process, or it is not ours to look at.
std::optional<ProcessFigures> FiguresOf(pid_t pid);

// Files below a folder, and their bytes. What goes while it is counted is not counted.
struct FolderFigures {
  double files = 0;
  double megabytes = 0;
};
FolderFigures FiguresOf(const std::string& folder);

}  // namespace tacit::test
