#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "support/process.h"
#include "system/accidents/shop_stream.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::test {

// A daemon that learns from a topic to which a stream is written at an even pace, and an operator
// who looks at its readiness. The broker is librdkafka's own, in this process.
class Scenario {
 public:
  struct Options {
    uint64_t seed = 0;
    Happening happening = Happening::kNothing;
    double records_a_second = 10'000;
    ShopStream::Size size = {};
  };
  explicit Scenario(const Options& options);

  // Waits until the daemon answers. False: it does not.
  bool Begin();
  // Writes the stream's records of this many seconds as they pass, and looks at readiness
  // meanwhile. Returns the seconds until trouble was told; nothing if it was not. Ends early when
  // it is told.
  std::optional<double> Pass(double seconds, bool happens);
  // Writes the happening's records until the operator is told; gives up after `patience`.
  bool PassUntilTold(std::chrono::seconds patience) {
    return Pass(static_cast<double>(patience.count()), true).has_value();
  }

  // The operator's readiness as it was last, and the daemon's log.
  const std::string& ready() const { return ready_; }
  std::string log() const { return process_->Err(); }
  // Records that the daemon has read.
  double RecordsRead() const;
  double written() const { return written_; }
  // The longest time, in seconds, that passed between two looks at the clock while the stream was
  // written: on a machine that is busy with other things a stream stands still, and then comes at
  // once.
  double longest_gap() const { return longest_gap_; }

 private:
  std::string Configuration() const;
  std::optional<std::string> Ask(const std::string& path) const;
  void Write(size_t count, bool happens, double since);

  const Options options_;
  TempDir dir_;
  stream::MockKafka kafka_;
  ShopStream stream_;
  std::unique_ptr<Process> process_;
  std::string ready_;
  double written_ = 0, longest_gap_ = 0;
  std::vector<std::string> records_;
};

}  // namespace tacit::test
