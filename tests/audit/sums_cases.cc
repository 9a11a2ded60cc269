// RowSums as it is, and with one fault planted in each. The auditor writes contributions down
// himself.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "audit/sums.h"
#include "base/check.h"
#include "mechanism/grid.h"
#include "model/linear/update.h"

namespace tacit::audit {
namespace {

using mechanism::RowSums;
using mechanism::SumTable;
using mechanism::UnitVector;
using model::linear::UpdateOptions;
using testing::FlatSums;

constexpr UpdateOptions kUpdate;

// A record as its contribution is made of it.
struct SumsRecord {
  std::vector<std::vector<uint64_t>> values;  // rows, per column
  double residual = 0, move = 0;
};
using SumsUnit = std::vector<SumsRecord>;

// An instance; all is known but whether the canary is there.
struct SumsSetting {
  std::vector<SumTable> tables;
  std::vector<SumsUnit> others;
  SumsUnit canary;
  double sigma = 1;
  double threshold_deviations = 5.5;
};

enum class SumsFault {
  kNone,
  kCountsUnpaid,      // the clip, and so the noise, is that of the sums alone
  kNoiseShared,       // a row's sum and its count get one draw
  kValueDropped,      // an untouched row's count is the threshold, and not noise above it
  kUserPerColumn,     // each column of a user to the whole clip, and not all of them together
  kClipThenDivide,    // a set's values are divided by their number's root after the clip
  kDivideInNormOnly,  // they are divided where the norm is taken, and nowhere else
};

size_t TableOf(const SumsSetting& setting, uint64_t row) {
  size_t j = 0;
  while (row >= setting.tables[j].first + setting.tables[j].rows) ++j;
  return j;
}

// A unit's vector by (column, cell); the numbers' column is that behind the last.
using Cells = std::map<std::pair<size_t, uint32_t>, double>;

double Norm(const Cells& cells) {
  double squares = 0;
  for (const auto& [cell, x] : cells) squares += x * x;
  return std::sqrt(squares);
}

// Draws once for each two numbers.
class OneDrawForTwo final : public TappedNoise {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    for (size_t i = 0; i < values.size(); i += 2) {
      int64_t drawn = 0;
      source_->AddGridGaussian(stddev, {&drawn, 1});
      for (size_t k = i; k < std::min(i + 2, values.size()); ++k) values[k] += drawn;
    }
  }
};

class SumsRelease final : public SumsSubject {
 public:
  SumsRelease(SumsSetting setting, SumsFault fault)
      : setting_(std::move(setting)), fault_(fault), options_(OptionsOf(setting_, fault)) {
    frame_ = {.tables = setting_.tables, .deviation = options_.clip * options_.noise_multiplier};
    for (const bool with : {false, true}) {
      std::vector<SumsUnit> units = setting_.others;
      if (with) units.push_back(setting_.canary);
      touched_[with] = TouchedBy(units);
      sums_[with] = std::make_unique<RowSums>(options_, setting_.tables);
      places_[with] = testing::Touch(setting_.tables, touched_[with], sums_[with].get());
      for (const SumsUnit& unit : units) Add(unit, with);
    }
    const mechanism::Grid grid =
        mechanism::MakeHistogramGrid(options_.clip, options_.noise_multiplier);
    frame_.threshold = std::ceil(options_.threshold_deviations * grid.stddev) * grid.step;
  }

  const SumsFrame& frame() const override { return frame_; }
  double charged_mu() const override { return std::sqrt(sums_[0]->charge().MuSquared()); }

  ExactSums Exact(bool with) override {
    const SumTable& last = setting_.tables.back();
    ExactSums exact{
        .sums = std::vector<double>(last.first + last.rows), .counts = {}, .numbers = {}};
    exact.counts = exact.sums;
    const auto steps = sums_[with]->sums();
    const auto& touched = touched_[with];
    const auto value = [&](uint32_t cell) {
      return static_cast<double>(steps[cell]) * sums_[with]->step();
    };
    for (const uint64_t row : touched) {
      exact.sums[row] = value(sums_[with]->SumOf(PlaceOf(row, with)));
      exact.counts[row] = value(sums_[with]->CountOf(PlaceOf(row, with)));
    }
    for (size_t i = 0; i < options_.numbers; ++i)
      exact.numbers.push_back(value(RowSums::Number(i)));
    return exact;
  }

  FlatSums Release(bool with, noise::NoiseSource& noise) override {
    TappedNoise& tap = fault_ == SumsFault::kNoiseShared ? one_for_two_ : tap_;
    tap.From(&noise);
    tap.draws().clear();
    RowSums sums = *sums_[with];
    FlatSums released = testing::Flat(std::move(sums).Release(tap));
    if (fault_ != SumsFault::kValueDropped) return released;
    for (size_t i = 0; i < released.rows.size(); ++i)
      if (!setting_.tables[TableOf(setting_, released.rows[i])].every_row &&
          !std::ranges::binary_search(touched_[with], released.rows[i]))
        released.counts[i] = frame_.threshold;
    return released;
  }

 private:
  static mechanism::RowSumsOptions OptionsOf(const SumsSetting& setting, SumsFault fault) {
    UpdateOptions paid = kUpdate;
    if (fault == SumsFault::kCountsUnpaid) paid.count_share = 0;
    return {.clip = model::linear::ContributionMost(setting.tables.size(), paid),
            .noise_multiplier = setting.sigma,
            .threshold_deviations = setting.threshold_deviations,
            .numbers = 2};
  }

  static std::vector<uint64_t> TouchedBy(const std::vector<SumsUnit>& units) {
    std::set<uint64_t> rows;
    for (const SumsUnit& unit : units)
      for (const SumsRecord& record : unit)
        for (const auto& values : record.values) rows.insert(values.begin(), values.end());
    return {rows.begin(), rows.end()};
  }

  uint32_t PlaceOf(uint64_t row, bool with) const { return places_[with].at(row); }

  // The sum of a unit's records; `divide`: a set counts as one column.
  Cells CellsOf(const SumsUnit& unit, bool with, bool divide) const {
    Cells cells;
    const size_t columns = setting_.tables.size();
    for (const SumsRecord& record : unit) {
      for (size_t j = 0; j < columns; ++j)
        for (const uint64_t row : record.values[j]) {
          const auto m = static_cast<double>(divide ? record.values[j].size() : 1);
          const uint32_t place = PlaceOf(row, with);
          cells[{j, sums_[with]->SumOf(place)}] += record.residual / std::sqrt(m);
          cells[{j, sums_[with]->CountOf(place)}] += kUpdate.count_share / m;
        }
      const double root = std::sqrt(static_cast<double>(columns));
      cells[{columns, sums_[with]->Number(0)}] +=
          kUpdate.move_share * root * record.residual * record.move;
      cells[{columns, sums_[with]->Number(1)}] += kUpdate.move_share * record.move * record.move;
    }
    return cells;
  }

  // Adds the cells of which `which` is true in one call, which clips them.
  void AddSome(const Cells& cells, bool with,
               const std::function<bool(size_t column, uint32_t cell)>& which) {
    UnitVector vector(sums_[with]->cells());
    for (const auto& [cell, x] : cells)
      if (which(cell.first, cell.second)) vector.Add(cell.second, x);
    sums_[with]->Add(vector);
  }
  void AddPastTheClip(const Cells& cells, bool with) {
    for (const auto& [only, x] : cells)
      AddSome(cells, with, [&](size_t, uint32_t cell) { return cell == only.second; });
  }

  void Add(const SumsUnit& unit, bool with) {
    const size_t columns = setting_.tables.size();
    Cells cells = CellsOf(unit, with, true);
    switch (fault_) {
      case SumsFault::kNone:
      case SumsFault::kNoiseShared:
      case SumsFault::kValueDropped:
        return AddSome(cells, with, [](size_t, uint32_t) { return true; });
      case SumsFault::kCountsUnpaid:
        for (const uint32_t counts : {0u, 1u})
          AddSome(cells, with, [&](size_t, uint32_t cell) { return cell % 2 == counts; });
        return;
      case SumsFault::kUserPerColumn:
        for (size_t j = 0; j <= columns; ++j)
          AddSome(cells, with, [&](size_t column, uint32_t) { return column == j; });
        return;
      case SumsFault::kClipThenDivide: {
        Cells undivided = CellsOf(unit, with, false);
        const double scale = std::min(1.0, options_.clip / Norm(undivided));
        for (auto& [cell, x] : cells) x *= scale;
        return AddSome(cells, with, [](size_t, uint32_t) { return true; });
      }
      case SumsFault::kDivideInNormOnly: {
        Cells undivided = CellsOf(unit, with, false);
        for (auto& [cell, x] : undivided) x *= std::min(1.0, options_.clip / Norm(cells));
        return AddPastTheClip(undivided, with);
      }
    }
  }

  const SumsSetting setting_;
  const SumsFault fault_;
  const mechanism::RowSumsOptions options_;
  SumsFrame frame_;
  std::vector<uint64_t> touched_[2];
  std::map<uint64_t, uint32_t> places_[2];
  std::unique_ptr<RowSums> sums_[2];
  TappedNoise tap_;
  OneDrawForTwo one_for_two_;
};

// Four columns: two of one value, the second of which may be large, a set, and one more of one
// value, which may be large too.
constexpr uint64_t kFirst[] = {0, 4, 9, 25, 30};
std::vector<SumTable> Tables(bool large) {
  std::vector<SumTable> tables;
  for (size_t j = 0; j < 4; ++j)
    tables.push_back({.first = kFirst[j],
                      .rows = kFirst[j + 1] - kFirst[j],
                      .every_row = !(large && j % 2 == 1)});
  return tables;
}

// A record with the values `v`, the set's values [0, m).
SumsRecord RecordOf(uint64_t v, size_t m, double residual, double move) {
  SumsRecord record{
      .values = {{v % 4}, {4 + v % 5}, {}, {25 + v % 5}}, .residual = residual, .move = move};
  for (uint64_t k = 0; k < m; ++k) record.values[2].push_back(9 + k);
  return record;
}

// Others share the canary's values or have those beside them. The canary's residual is negative,
// so that it draws sum and count of a value apart.
SumsSetting EventSetting(bool large, double threshold, uint64_t others_have, size_t others = 5) {
  SumsSetting setting{.tables = Tables(large),
                      .others = {},
                      .canary = {RecordOf(0, 4, -kUpdate.residual_most, 1)},
                      .threshold_deviations = threshold};
  for (uint64_t i = 0; i < others; ++i)
    setting.others.push_back({RecordOf(others_have, 3, i % 2 ? 0.4 : -0.3, 0.2)});
  return setting;
}

// Users of many records. The canary's are alike in the first column alone.
SumsSetting UserSetting() {
  SumsSetting setting = EventSetting(false, 5.5, 1);
  for (uint64_t i = 0; i < 4; ++i) setting.others.push_back(SumsUnit(20, RecordOf(i, 2, 0.3, 0)));
  setting.canary.clear();
  for (uint64_t i = 0; i < 30; ++i) {
    setting.canary.push_back(RecordOf(i, 1 + i % 5, -0.6, 0.5));
    setting.canary.back().values[0] = {2};
  }
  return setting;
}

SumsCase CaseOf(std::string name, const SumsSetting& setting, SumsFault fault = SumsFault::kNone,
                bool reaches = true) {
  return {.name = std::move(name),
          .make = [=] { return std::make_unique<SumsRelease>(setting, fault); },
          .reaches = reaches};
}

// A canary whose event has sixteen values in its set.
SumsSetting SetSetting() {
  SumsSetting setting = EventSetting(false, 5.5, 1);
  setting.canary = {RecordOf(0, 16, -kUpdate.residual_most, 1)};
  return setting;
}

// A threshold that most rows reach, whether a unit touched them or not.
constexpr double kLow = -1;
// Enough for five others' counts to lie about it, in deviations.
double CountOfOthers() { return 5 * kUpdate.count_share / model::linear::ContributionMost(4, {}); }

}  // namespace

std::vector<SumsCase> RightSums() {
  return {
      CaseOf("sums, an event", EventSetting(false, 5.5, 0)),
      CaseOf("sums, an event with a large set", SetSetting()),
      CaseOf("sums, a user of many records", UserSetting()),
      CaseOf("sums, large columns that nobody else touched", EventSetting(true, kLow, 1)),
      CaseOf("sums, large columns far above the threshold", EventSetting(true, 5.5, 0, 40)),
      CaseOf("sums, large columns at the threshold", EventSetting(true, CountOfOthers(), 0),
             SumsFault::kNone, false),
      CaseOf("sums, large columns below the threshold", EventSetting(true, 5.5, 1),
             SumsFault::kNone, false),
  };
}

std::vector<FaultySums> PlantedSums() {
  return {
      {CaseOf("counts unpaid", EventSetting(false, 5.5, 0), SumsFault::kCountsUnpaid)},
      {CaseOf("noise shared by count and sum", EventSetting(false, 5.5, 0),
              SumsFault::kNoiseShared)},
      {CaseOf("sampler that drops its value", EventSetting(true, kLow, 1),
              SumsFault::kValueDropped)},
      {CaseOf("a user clipped per column", UserSetting(), SumsFault::kUserPerColumn)},
      {CaseOf("a set divided in the norm only", SetSetting(), SumsFault::kDivideInNormOnly)},
      {CaseOf("clip before the division of a set", SetSetting(), SumsFault::kClipThenDivide),
       false},
  };
}

}  // namespace tacit::audit
