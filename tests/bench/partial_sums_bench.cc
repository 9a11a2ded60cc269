// Measures what a trainer does for each message of sums: reads the bytes of a part and adds it up,
// single-threaded; and what a worker does to write it. Events have values of Zipf's law, in columns
// that are released whole ("published") and in large ones that are not ("raw").
//   partial_sums_bench [PARTS EVENTS]        4 parts of 300,000 events
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "mechanism/partial_sums.h"

namespace tacit::mechanism {
namespace {

constexpr size_t kColumns = 26;
const RowSumsOptions kOptions{.clip = 1, .noise_multiplier = 1, .numbers = 3};

// Processor time of this thread.
double Milliseconds(const auto& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  };
  const double begun = now();
  work();
  return now() - begun;
}

// The sums of a part's events. The ranks of values follow Zipf's law of exponent 1.
RowSums Sum(std::span<const SumTable> tables, size_t events, std::mt19937_64& random) {
  const std::vector<double> of_sums(kColumns, 0.15), of_counts(kColumns, 0.04);
  const ColumnWeights weights(kOptions, of_sums, of_counts);
  RowSums sums(kOptions, tables);
  std::unordered_map<uint64_t, uint32_t> found;
  std::uniform_real_distribution<double> uniform;
  std::vector<uint32_t> places(kColumns);
  for (size_t i = 0; i < events; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      const auto values = static_cast<double>(tables[j].rows);
      const auto rank = static_cast<uint64_t>(std::pow(values, uniform(random)) - 1);
      const uint64_t value = rank * 0x9e3779b97f4a7c15 % tables[j].rows;  // anywhere
      if (tables[j].every_row) {
        places[j] = sums.FirstPlace(j) + static_cast<uint32_t>(value);
        continue;
      }
      const auto [place, is_new] = found.try_emplace(tables[j].first + value);
      if (is_new) place->second = sums.Touch(tables[j].first + value);
      places[j] = place->second;
    }
    sums.Add(weights, places, uniform(random) < 0.25 ? 0.75 : -0.25, std::vector<double>(3, 0.01));
  }
  return sums;
}

void Measure(std::string_view name, uint64_t values, bool every_row, size_t parts, size_t events) {
  std::vector<SumTable> tables;
  for (size_t j = 0; j < kColumns; ++j) tables.push_back({j * values, values, every_row});
  std::mt19937_64 random(1);
  std::vector<std::string> messages;
  double rows = 0, bytes = 0, closing = 0, encoding = 0;
  for (size_t part = 0; part < parts; ++part) {
    RowSums sums = Sum(tables, events, random);
    rows += static_cast<double>(sums.CountTouched());
    closing += Milliseconds([&] {
      const PartialSums closed(std::move(sums));
      encoding += Milliseconds([&] { messages.push_back(closed.Encode()); });
    });
    bytes += static_cast<double>(messages.back().size());
  }
  double adding = 1e9;
  for (int round = 0; round < 5; ++round) {
    RowSums whole(kOptions, tables);
    PartialSums rest(kOptions, tables);
    double added = 0;
    bool read = true;
    for (const std::string& message : messages)
      added += Milliseconds([&] { read = read && rest.AddBytes(message, &whole); });
    TACIT_CHECK(read, "a part that was encoded here");
    adding = std::min(adding, added);
  }
  fmt::print(
      "{}: {:.0f} rows, {:.2f} bytes a row; a million rows are closed in {:.1f} ms, written "
      "in {:.1f} ms, read and added in {:.1f} ms\n",
      name, rows, bytes / rows, 1e6 * (closing - encoding) / rows, 1e6 * encoding / rows,
      1e6 * adding / rows);
}

}  // namespace
}  // namespace tacit::mechanism

int main(int argc, char** argv) {
  const size_t parts = argc > 2 ? std::strtoul(argv[1], nullptr, 10) : 4;
  const size_t events = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 300'000;
  tacit::mechanism::Measure("published", 26'000, true, parts, events);
  tacit::mechanism::Measure("raw", 1'300'000, false, parts, events);
}
