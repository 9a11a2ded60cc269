// The accountant of allocations: how far apart its bounds are, and what they take. Prints a table
// row for each question, with processor times: the first call's, which knows nothing, and the least
// of some more.
//
//   allocation_bench [GROUP]...
//       values      the page's values (tests/golden), and how far the upper bound is from them
//       widths      one block, over sigma, steps and delta
//       blocks      several blocks of a period
//       calibrate   the least noise for a target
//       periods     the periods of one user, composed
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "privacy/calibrate.h"
#include "privacy/pld.h"
#include "support/golden.h"

namespace tacit::privacy {
namespace {

constexpr int kRepeats = 5;

double ProcessorMs() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

struct Took {
  double first_ms = 0, least_ms = 0;
};
template <class Work>
Took Time(const Work& work) {
  Took took;
  for (int i = 0; i <= kRepeats; ++i) {
    const double begun = ProcessorMs();
    work();
    const double ms = ProcessorMs() - begun;
    if (i == 0) took.first_ms = ms;
    took.least_ms = i == 0 ? ms : std::min(took.least_ms, ms);
  }
  return took;
}

struct Question {
  double sigma = 1;
  uint64_t steps = 1, count = 1;
  double delta = 1e-6;
};

CertifiedInterval Answer(const Question& question) {
  PldAccountant accountant(Adjacency::kAddRemove);
  TACIT_CHECK(accountant.Add(Event::Allocation(question.sigma, question.steps), question.count)
                  .has_value());
  const auto found = accountant.Epsilon(Delta(question.delta));
  TACIT_CHECK(found.has_value(), "no answer");
  return *found;
}
double UpperAnswer(const Question& question) {
  const auto found = PldUpperEpsilon(Event::Allocation(question.sigma, question.steps),
                                     question.count, Adjacency::kAddRemove, Delta(question.delta));
  TACIT_CHECK(found.has_value(), "no answer");
  return *found;
}

void Print(const Question& question, const std::string& more = "") {
  CertifiedInterval found;
  double upper = 0;
  const Took both = Time([&] { found = Answer(question); });
  const Took alone = Time([&] { upper = UpperAnswer(question); });
  fmt::print(
      "| {:5} | {:5} | {:4} | {:7.0e} | {:.6f} | {:8.5f} % | {:8.5f} % | {:8.2f} | {:8.2f} | "
      "{:8.2f} |{}\n",
      question.sigma, question.steps, question.count, question.delta, found.upper,
      100 * (found.upper / found.lower - 1), 100 * (upper / found.upper - 1), both.first_ms,
      both.least_ms, alone.least_ms, more);
}
void PrintHead() {
  fmt::print(
      "\n| sigma | steps | count | delta | upper | above lower | upper alone | both: first ms | "
      "least | upper alone |\n|---|---|---|---|---|---|---|---|---|---|\n");
}

void Values() {
  PrintHead();
  for (const auto& row : tacit::testing::ReadGolden("allocation")) {
    const auto number = [&](size_t i) { return std::strtod(row[i].c_str(), nullptr); };
    const Question question{
        .sigma = number(0), .steps = static_cast<uint64_t>(number(1)), .delta = number(2)};
    Print(question,
          fmt::format(" {:+.1e} of the page's |", Answer(question).upper / number(3) - 1));
  }
}

void Widths() {
  PrintHead();
  for (const double sigma : {0.5, 0.8, 1.0, 2.0, 5.0})
    for (const uint64_t steps : {2, 10, 100, 1000})
      for (const double delta : {1e-5, 1e-10, 1e-14})
        Print({.sigma = sigma, .steps = steps, .delta = delta});
}

void Blocks() {
  PrintHead();
  for (const double sigma : {0.8, 1.0, 2.0})
    for (const uint64_t steps : {10, 100})
      for (const uint64_t blocks : {2, 8})
        for (const double delta : {1e-5, 1e-10, 1e-14})
          Print({.sigma = sigma, .steps = steps, .count = blocks, .delta = delta});
}

void Periods() {
  PrintHead();
  for (const double sigma : {0.8, 1.0, 4.0})
    for (const uint64_t steps : {10, 100, 1000})
      Print({.sigma = sigma, .steps = steps, .count = 100});
}

void Calibrate() {
  fmt::print(
      "\n| epsilon | delta | steps | blocks | sigma | first ms | least ms |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const double epsilon : {1.0, 8.0})
    for (const uint64_t steps : {10, 100, 1000})
      for (const uint64_t blocks : {1, 8}) {
        double sigma = 0;
        const Took took = Time([&] {
          const auto found = CalibrateAllocation({epsilon, 1e-6, 1, blocks}, steps);
          TACIT_CHECK(found.has_value(), "no answer");
          sigma = *found;
        });
        fmt::print("| {} | 1e-6 | {:5} | {} | {:.4f} | {:8.2f} | {:8.2f} |\n", epsilon, steps,
                   blocks, sigma, took.first_ms, took.least_ms);
      }
}

void Run(std::span<char*> groups) {
  const auto wanted = [&](std::string_view name) {
    return groups.empty() || std::ranges::find(groups, name, [](char* word) {
                               return std::string_view(word);
                             }) != groups.end();
  };
  if (wanted("values")) Values();
  if (wanted("widths")) Widths();
  if (wanted("blocks")) Blocks();
  if (wanted("calibrate")) Calibrate();
  if (wanted("periods")) Periods();
}

}  // namespace
}  // namespace tacit::privacy

int main(int argc, char** argv) {
  tacit::privacy::Run({argv + 1, static_cast<size_t>(argc - 1)});
  return 0;
}
