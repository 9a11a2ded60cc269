#include "console/terminal_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tacit::console {
namespace {

constexpr std::chrono::milliseconds kRedraw(200);
constexpr std::chrono::milliseconds kPlainLine(5000);
constexpr size_t kBarWidth = 24;

}  // namespace

std::string ProgressBar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth * 8);
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  const size_t drawn = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return bar + std::string(kBarWidth - drawn, ' ');
}

TerminalLine::TerminalLine(const Clock& clock)
    : clock_(clock), terminal_(isatty(STDERR_FILENO) == 1), last_(clock.Now()) {}

bool TerminalLine::due() const {
  return clock_.Now() - last_ >= (terminal_ ? kRedraw : kPlainLine);
}

void TerminalLine::Draw(const std::string& text, const std::vector<LogField>& fields) {
  last_ = clock_.Now();
  if (!terminal_) return LogEvent(spdlog::level::info, "progress", fields, text);
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void TerminalLine::End() {
  if (terminal_) std::fputc('\n', stderr);
}

}  // namespace tacit::console
