#include "system/soak/process_figures.h"

#include <filesystem>
#include <fstream>

namespace tacit::test {

namespace fs = std::filesystem;

std::optional<ProcessFigures> FiguresOf(pid_t pid) {
  const fs::path proc = fs::path("/proc") / std::to_string(pid);
  ProcessFigures figures;
  std::ifstream status(proc / "status");
  bool resident = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      figures.resident_mb = std::stod(line.substr(6)) / 1024;  // given in KiB
      resident = true;
    }
    if (line.starts_with("Threads:")) figures.threads = std::stod(line.substr(8));
  }
  std::error_code error;
  for (fs::directory_iterator fd(proc / "fd", error), end; !error && fd != end; fd.increment(error))
    ++figures.descriptors;
  if (error || !resident) return std::nullopt;
  return figures;
}

FolderFigures FiguresOf(const std::string& folder) {
  FolderFigures figures;
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (!file->is_regular_file(gone)) continue;
    const auto bytes = file->file_size(gone);
    if (gone) continue;
    ++figures.files;
    figures.megabytes += static_cast<double>(bytes) / (1 << 20);
  }
  return figures;
}

}  // namespace tacit::test
