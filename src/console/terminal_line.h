#pragma once

#include <string>

#include "base/clock.h"

namespace tacit::console {

// A progress bar of fixed width: "████▌   ".
std::string ProgressBar(double share);

// A line that is redrawn on a terminal; elsewhere a log record every few seconds.
class TerminalLine {
 public:
  explicit TerminalLine(const Clock& clock);

  bool is_terminal() const { return terminal_; }
  // Returns true if it is time to draw.
  bool due() const;
  void Draw(const std::string& text);
  // Ends the line, so that later output begins on a new one.
  void End();

 private:
  const Clock& clock_;
  const bool terminal_;
  Clock::TimePoint last_;
};

}  // namespace tacit::console
