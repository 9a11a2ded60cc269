#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "inspect/sample.h"

namespace tacit::inspect {

// Numbers of a day, over the days that have records.
struct Days {
  uint64_t days = 0;
  double events = 0, users = 0;    // the means
  std::string from = {}, to = {};  // UTC
  double ordered = 0;              // share of neighbours whose times do not fall
  uint64_t others = 0;             // times of another age, on no day of these
};

// The outcome of reading a sample's records with the codec that tacitd would have.
struct Trial {
  uint64_t good = 0;
  Complaints complaints;
  // Records and labels of 1 in either half of the sample.
  uint64_t first = 0, second = 0, first_positives = 0, second_positives = 0;

  // Noised counts have no complaints, but a number of records that were not good, and days.
  std::optional<uint64_t> noised_bad = {};
  std::optional<Days> noised_days = {};

  uint64_t bad() const { return noised_bad.value_or(complaints.total()); }
  double label_rate() const {
    return good == 0 ? 0
                     : static_cast<double>(first_positives + second_positives) /
                           static_cast<double>(good);
  }
};

// A record's outcome: its label, or that it is none.
enum class Outcome : uint8_t { kUnread, kBad, kZero, kOne };

// Reads the sample's lines once more. `outcomes`, if there are any, gets that of each line.
// REQUIRES a sample of records, and a proposal for it.
Result<Trial> TryOut(const Sample& sample, const config::Config& config,
                     std::vector<Outcome>* outcomes = nullptr);

}  // namespace tacit::inspect
