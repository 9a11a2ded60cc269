#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// The rules by which `tacit inspect` proposes a configuration. Each is a function of numbers that
// the operator knows or has counted, and continuous where its result is a number. rules.cc has the
// constants, ten of them, each with its evidence; all of them are public. Defaults that the
// configuration has itself (the period of a linear model, the width of an embedding) stay there.
namespace tacit::inspect {

// Returns the number of different values to expect in `records` records, where `counted` of them
// had `distinct` values and the number of values grows with the power `growth` of records (Heaps'
// law).
double ValuesExpected(double distinct, double growth, double counted, double records);

// Returns the rows of a table for this many values.
uint64_t TableRows(double values);

// Returns true if whole numbers of this many different values are names (an hour, a shelf) rather
// than amounts: a category of so few values has no more weights than a number's bins have.
bool AreNames(uint64_t distinct);

// A value's, or a bin's, events and labels of 1 in the first half of a sample, and in the second.
struct HalvesCount {
  double events = 0, positives = 0;
  double later_events = 0, later_positives = 0;

  void Add(bool later, bool is_one) {
    (later ? later_events : events) += 1;
    (later ? later_positives : positives) += is_one ? 1 : 0;
  }
};
// Returns the loss, in nats an event, of labels of the second half that are foretold by what the
// first half says of each value. `rate`: labels of 1 in the first half.
double ForetellingLoss(std::span<const HalvesCount> values, double rate);

// The share of the records from which a user, or a text that stands for no user, is told of.
inline constexpr double kHeavyShare = 0.03;

// Returns the AUC of the same foretelling: how often a label of 1 is ranked above one of 0.
double ForetellingAuc(std::span<const HalvesCount> values, double rate);
// The AUC from which a column alone says what the label is.
inline constexpr double kForetellsAlone = 0.95;
// The share of the labels of 1 above which records of hardly any other label have such an AUC.
inline constexpr double kForetellsMost = 0.9;
// The AUCs from which it is told of a column that stays: by being filled in, and by its names.
inline constexpr double kForetellsByPresence = 0.75, kForetellsByValue = 0.85;
// The most, in nats an event, by which chance makes names foretell worse than amounts: a value of
// k events has k / (2 (k + p)^2) from the variance of its shrunk rate, p of them prior, and that is
// largest, 1 / 8 p, at k = p = 10.
inline constexpr double kChanceOfNames = 1.0 / 80;

// Returns the number from which a rating is a label of 1: the one that divides the records most
// evenly, so that the label tells most. `counts` has the ratings in ascending order. REQUIRES two
// ratings at least.
double RatingThreshold(std::span<const std::pair<double, uint64_t>> counts);

// Returns the records of a period out of which a model of sums is made, where the files have
// `records` of them and the unit is the user. Without epsilon: the most that any epsilon of 1 and
// above would have.
uint64_t PeriodRecords(std::optional<double> epsilon, double records);

// Returns the records of a period whose items are counted, where the files have `records` of them.
uint64_t CountsPeriodRecords(double records);

// Returns the offsets, counted over all files, at which tacitd begins a step of mode once: after
// `batch` offsets, and behind the `files`th file that ends within a step. `file_offsets`: of each
// file, with its header. REQUIRES `batch` and `files` of one at least.
std::vector<uint64_t> StepStarts(std::span<const double> file_offsets, uint64_t batch,
                                 uint64_t files);

// Returns the period, or a longer one that leaves no short rest, below half a period, of `offsets`
// that follow each other.
uint64_t WithoutShortRest(uint64_t period, uint64_t offsets);

// Returns the periods that a user is learnt from. `periods` has, for each user of the sample, the
// number of periods with a record of this user.
uint32_t UserAllowance(std::span<const uint32_t> periods);

// The visits of users.
struct UserVisits {
  std::vector<uint32_t> periods;     // of each user, with a record of this user
  std::vector<double> records = {};  // of all users in their first period, their second, ...;
                                     // if empty, they are not known
};
// Returns the share of the records that an allowance of this many periods leaves out, or of the
// users' periods where the records are not known.
double LeftOutShare(const UserVisits& visits, uint32_t allowance);

// A network over embeddings whose steps add noise. Its steps, at the configuration's default of a
// batch, pass once over a period.
struct NetworkRule {
  std::vector<uint32_t> hidden;
  double threshold = 0;
  double gradient_clip = 0;
  double learning_rate = 0, row_learning_rate = 0;
};
NetworkRule NetworkFor(uint64_t categories);

}  // namespace tacit::inspect
