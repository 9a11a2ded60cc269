#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "inspect/rules.h"
#include "inspect/sample.h"

namespace tacit::inspect {

// Times of 1990 to 2100, in milliseconds.
inline constexpr double kTimesFrom = 631'152'000'000, kTimesTo = 4'102'444'800'000;
inline bool IsUsualTime(double ms) { return ms >= kTimesFrom && ms <= kTimesTo; }
struct TimeUnitRow {
  event::TimeUnit unit;
  double ms_per_unit;
  std::string_view name;  // as timestamp_unit has it
};
inline constexpr TimeUnitRow kTimeUnits[] = {{event::TimeUnit::kSeconds, 1000, "s"},
                                             {event::TimeUnit::kMilliseconds, 1, "ms"},
                                             {event::TimeUnit::kMicroseconds, 1e-3, "us"},
                                             {event::TimeUnit::kNanoseconds, 1e-6, "ns"}};

// A column in numbers.
struct Profile {
  uint64_t present = 0, distinct = 0;
  double missing = 0;                            // share of the records
  double missing_first = 0, missing_second = 0;  // the same in either half
  double top = 0, top_10 = 0;  // shares of the one and of the ten most frequent values
  double top_least = 0;        // the share that the most frequent one has beyond all noise
  double growth = 0;           // power of the records with which values grow
  double fresh = 0;            // share of the second half with values the first has not
  double closeness = 1;        // of a value's records to each other; .63 where chance orders them
  uint64_t runs = 0;           // of neighbours with one value
  double ordered = 0;          // share of neighbours whose numbers do not fall
  double least = 0, most = 0;  // numbers
  uint64_t elements = 0;       // different ones, of lists and sets
  bool zero_or_one = false;    // numbers or flags, and there are both
  bool hidden = false;         // by noise: its counts say nothing
  std::array<uint64_t, std::size(kTimeUnits)> times_in = {};  // numbers of 1990 to 2100, by unit
  double times_ordered = 0;                       // the same as `ordered`, of these alone
  std::optional<event::TimeUnit> time_unit = {};  // in which nearly all are times of 1990 to 2100
};
Profile ProfileOf(const Column& column, uint64_t rows);

// The reason why a column plays its part. It is a guess where neither a person nor the format says
// so.
struct Grounds {
  bool guessed = false;
  std::string reason = {};
  std::vector<std::string> rivals = {};  // places of columns that might be meant too
};

// The label's column and rule.
struct LabelRole {
  size_t column = 0;
  Grounds grounds = {};
  config::Words values = {};            // value, "0" or "1"; if empty, it is 0 or 1, or
  bool values_open = false;             // they are a guess: a person has to give them
  std::optional<double> at_least = {};  // a number, and always a guess
  std::string reason = {};              // of the rule
};

struct FeatureRole {
  size_t column = 0;
  std::string name = {};
  config::Feature::Kind kind = config::Feature::Kind::kDense;
  std::string reason = {};
};

struct TimeRole {
  size_t column = 0;
  Grounds grounds = {};
  event::TimeUnit unit = event::TimeUnit::kMilliseconds;
  double ms_per_unit = 1;
};

// The parts that the columns of a sample play.
struct Roles {
  std::vector<Profile> profiles;  // by column
  std::optional<LabelRole> label;
  std::string refused;  // why a field that a person names cannot be what it is named for, or ""
  std::optional<TimeRole> time;
  std::optional<size_t> user, item, event_id;
  Grounds user_grounds, item_grounds;
  std::vector<FeatureRole> features;
  std::vector<std::pair<size_t, std::string>> left_out;  // with the reason
  std::vector<std::string> warnings;
  std::vector<std::string> missing;    // texts in place of a value that stand for none
  bool too_few_to_find_leaks = false;  // labels of one kind, in the second half
  bool plain_json = false;             // records are of schemas/interaction.schema.json
  bool label_denied = false;           // a person says that there is none

  // There is no label: each record says that a user has met an item.
  bool are_meetings() const { return !label && user && item; }
  // Lists a text as missing, unless it is a label, or a number: that may be a category too.
  bool ListAsMissing(const std::string& text);
};

// A part with a column, by the name of the option that names it.
struct NamedPart {
  std::string_view name;
  size_t column = 0;
  const Grounds* grounds = nullptr;  // of the roles
};
// The label, the user, the item and the time, as far as there are such columns.
std::vector<NamedPart> NamedParts(const Roles& roles);

// The AUC with which a column foretells the label, by being there and by its value. An empty list
// and a text that stands for none are not there. Where the label's values are open, each is judged
// against the others, and the AUC is of the one that is foretold best.
struct Foretold {
  bool has_auc = true;  // there are labels enough of either kind
  double by_presence = 0.5, by_value = 0.5;
  bool filled_is_one = false;  // records that have it have the label of 1 more often
  // All records that have it, and no number of 0 or -1 in it, or that have another value than the
  // most frequent one, have the label of 1, which is no chance.
  bool is_always_one = false;
  // The records that one value of it picks out, or its being there or not, or an element, if they
  // have a part of the labels of 1 and next to no others. Of several, those with most.
  struct Telling {
    std::string where = {};  // behind the column's name: "is not 0"
    double records = 0, ones = 0;
    double share = 0;  // of all labels of 1
  };
  std::optional<Telling> telling = {};
  std::string label = "1";  // the one that is foretold
};

// Answers what is asked of the records beside their profiles. It is raw, or noised.
class Evidence {
 public:
  virtual ~Evidence() = default;
  // True if the numbers of a column are known one by one.
  virtual bool KnowsNumbers(size_t column) const = 0;
  // The numbers of a column, ascending, with the records that have them. REQUIRES that it knows.
  virtual std::vector<std::pair<double, uint64_t>> Numbers(size_t column) const = 0;
  // True if words of the records may be told.
  virtual bool TellsWords() const = 0;
  // True if most pairs of user and value are there once.
  virtual bool MetOnce(size_t user, size_t column) const = 0;
  // The loss of the second half's labels foretold by a column's values, and by the bins they lie
  // in; nothing if it is not known.
  virtual std::optional<std::pair<double, double>> Losses(const LabelRole& label,
                                                          size_t column) const = 0;
  // The AUC of the second half's labels foretold by a column alone; nothing if it is not known, or
  // if there are too few labels.
  virtual std::optional<Foretold> ForetoldAlone(const LabelRole& label, size_t column) const = 0;
  // Returns how often users come in periods that begin at these offsets, counted over all files.
  virtual UserVisits Visits(size_t user, const std::vector<uint64_t>& starts) const = 0;
};
// The evidence of a raw sample, which must outlive it.
std::unique_ptr<Evidence> RawEvidence(const Sample& sample);

// The places that a person has named; if empty, they are to be found.
struct Named {
  std::string label = {}, user = {}, item = {}, time = {};
  bool no_label = false;  // the records have none
  config::Words label_values = {};
};

// Tells the parts of the columns. `profiles`: by column.
Roles FindRoles(const Sample& sample, std::vector<Profile> profiles, const Evidence& evidence,
                const Named& named);
// The same of a raw sample.
Roles FindRoles(const Sample& sample, const Named& named = {});

// Returns the label of a row by its rule; nothing where it has none.
std::optional<bool> LabelOfRow(const Sample& sample, const LabelRole& label, uint64_t row);

}  // namespace tacit::inspect
