#pragma once

#include <string>

#include "base/clock.h"

namespace tacit::app {

// "████▌   " of a fixed width.
std::string ProgressBar(double share);

// One line that is drawn over again on a terminal; elsewhere a record of the log every few seconds.
class TerminalLine {
 public:
  explicit TerminalLine(const Clock& clock);

  bool is_terminal() const { return terminal_; }
  // Whether it is time to draw.
  bool due() const;
  void Draw(const std::string& text);
  // Ends the line: what is printed next begins one of its own.
  void End();

 private:
  const Clock& clock_;
  const bool terminal_;
  Clock::TimePoint last_;
};

}  // namespace tacit::app
