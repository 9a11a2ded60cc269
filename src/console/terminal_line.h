#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/log.h"

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
  // `fields`: the figures in `text`, for a log record.
  void Draw(const std::string& text, const std::vector<LogField>& fields = {});
  // Passes over a drawing that is due: the next one is due as if it had been made.
  void Pass() { last_ = clock_.Now(); }
  // Ends the line, so that later output begins on a new one.
  void End();

 private:
  const Clock& clock_;
  const bool terminal_;
  Clock::TimePoint last_;
};

}  // namespace tacit::console
