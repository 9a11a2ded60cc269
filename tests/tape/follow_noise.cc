#include "tape/follow_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "noise/grid_gaussian.h"

namespace tacit::tape {

// Each way of asking overrides the draws that it makes. A draw returns false, or nothing, where the
// world on the tape made no such one.
class FollowNoise::Answers {
 public:
  virtual ~Answers() = default;
  virtual bool Grid(double /*stddev*/, std::span<int64_t>) { return false; }
  virtual bool Fill(double /*stddev*/, double /*factor*/, std::span<float>) { return false; }
  virtual std::optional<uint64_t> Skip() { return {}; }
  virtual std::optional<double> Uniform() { return {}; }
  virtual std::optional<double> Tail() { return {}; }
  // True once all has been drawn that makes the worlds the same.
  virtual bool AtEnd() const = 0;
  // By how much the sums of the two worlds are apart, in steps, squared.
  double MovedSquared() const { return moved_squared_; }

 protected:
  void Moved(int64_t here, int64_t there) {
    const auto moved = static_cast<double>(here - there);
    moved_squared_ += moved * moved;
  }

 private:
  double moved_squared_ = 0;
};

namespace {

using lab::TwinNoise;
using Call = TwinNoise::Call;
using Kind = Call::Kind;
using Rows = std::vector<uint64_t>;

constexpr int64_t kFarAbove = int64_t{1} << 61;  // than any threshold
constexpr uint64_t kBeyondAll = uint64_t{1} << 62;

// A number of the world on the tape, in steps.
struct Number {
  int64_t sum = 0, left = 0;
};

// The numbers of a query, in their order.
struct Steps {
  double stddev = 0;
  std::vector<Number> values;
};
Steps StepsOf(const TapedStep& step, size_t query) {
  Steps steps;
  for (const Call& call : step.calls) {
    if (call.query != query || call.kind != Kind::kGrid) continue;
    steps.stddev = call.asked;
    for (size_t i = 0; i < call.after.size(); ++i)
      steps.values.push_back({call.before[i], call.after[i]});
  }
  return steps;
}

bool Contains(std::span<const uint64_t> rows, uint64_t row) {
  return std::ranges::binary_search(rows, row);
}

// The hits of geometric skips over a table: these places, and no others.
class Hits {
 public:
  explicit Hits(Rows places = {}) : places_(std::move(places)) {}
  uint64_t Skip() {
    if (at_end()) return kBeyondAll;
    const uint64_t place = places_[next_++];
    return place - std::exchange(after_, place + 1);
  }
  bool at_end() const { return next_ == places_.size(); }

 private:
  Rows places_;
  size_t next_ = 0;
  uint64_t after_ = 0;
};

// A gradient as it left: its dense part, and the numbers of rows in steps of its grid. Rows of
// nobody left as floats; any steps that round to them will do.
class Gradient {
 public:
  Gradient(const TapedStep& step, const RowSpace& space) : space_(space) {
    Steps steps;
    std::vector<Number> nobody;
    for (size_t q = 0; q < step.queries.size(); ++q) {
      if (step.queries[q].name != "gradient") continue;
      if (step.queries[q].bound > 0) {
        rows_ = step.queries[q].rows;
        steps = StepsOf(step, q);
      }
      for (const Call& call : step.calls)
        if (call.query == q && call.kind == Kind::kFillGrid)
          for (const double number : call.given)
            nobody.push_back({0, std::llround(number / call.factor)});
    }
    stddev_ = steps.stddev;
    size_t width = 0;
    for (const uint64_t row : rows_) width += Width(row);
    const auto dense_end = steps.values.end() - static_cast<ptrdiff_t>(width);
    dense_.assign(steps.values.begin(), dense_end);
    Place(rows_, {dense_end, steps.values.end()});
    if (!nobody.empty()) Place(RowsBeside(rows_), nobody);
  }

  double stddev() const { return stddev_; }
  std::span<const Number> dense() const { return dense_; }
  const Rows& rows() const { return rows_; }
  bool has_nobody() const { return of_row_.size() > rows_.size(); }
  size_t Width(uint64_t row) const { return space_.tables()[space_.TableOf(row)].dim; }
  // Null if the row was not written.
  const std::vector<Number>* Find(uint64_t row) const {
    const auto found = of_row_.find(row);
    return found == of_row_.end() ? nullptr : &found->second;
  }
  Rows RowsBeside(std::span<const uint64_t> some) const {
    Rows others;
    for (uint64_t row = 0; row < space_.rows(); ++row)
      if (!Contains(some, row)) others.push_back(row);
    return others;
  }

 private:
  void Place(const Rows& rows, const std::vector<Number>& numbers) {
    auto next = numbers.begin();
    for (const uint64_t row : rows) {
      const auto end = next + static_cast<ptrdiff_t>(Width(row));
      of_row_[row].assign(next, end);
      next = end;
    }
  }

  const RowSpace& space_;
  double stddev_ = 0;
  Rows rows_;  // with sums
  std::vector<Number> dense_;
  std::map<uint64_t, std::vector<Number>> of_row_;
};

// The numbers of some rows, one after the other.
class RowNumbers {
 public:
  RowNumbers(const Gradient& gradient, Rows rows) : gradient_(gradient), rows_(std::move(rows)) {}
  bool at_end() const { return row_ == rows_.size(); }
  // Nothing where the row was not written.
  std::optional<Number> Next() {
    const auto* numbers = at_end() ? nullptr : gradient_.Find(rows_[row_]);
    if (numbers == nullptr) return {};
    const Number number = (*numbers)[i_++];
    if (i_ == numbers->size()) ++row_, i_ = 0;
    return number;
  }

 private:
  const Gradient& gradient_;
  const Rows rows_;
  size_t row_ = 0, i_ = 0;
};

class GradientSums final : public FollowNoise::Answers {
 public:
  GradientSums(const Gradient& gradient, const Rows& rows)
      : gradient_(gradient), rows_(gradient, rows) {
    // Rows that this world does not ask about have sums of 0 here.
    for (const uint64_t row : gradient.rows())
      if (!Contains(rows, row))
        for (const Number& number : *gradient.Find(row)) Moved(0, number.sum);
  }
  bool Grid(double stddev, std::span<int64_t> values) override {
    if (stddev != gradient_.stddev()) return false;
    for (int64_t& value : values) {
      const auto number =
          dense_ < gradient_.dense().size() ? gradient_.dense()[dense_++] : rows_.Next();
      if (!number) return false;
      Moved(value, number->sum);
      value = number->left;
    }
    return true;
  }
  bool AtEnd() const override { return dense_ == gradient_.dense().size() && rows_.at_end(); }

 private:
  const Gradient& gradient_;
  size_t dense_ = 0;
  RowNumbers rows_;
};

// A block of the rows that this world did not touch.
class RowsOfNobody final : public FollowNoise::Answers {
 public:
  RowsOfNobody(const Gradient& gradient, RowNumbers& rows) : gradient_(gradient), rows_(rows) {}
  bool Fill(double stddev, double factor, std::span<float> out) override {
    if (stddev != gradient_.stddev()) return false;
    for (float& value : out) {
      const auto number = rows_.Next();
      if (!number) return false;
      value = static_cast<float>(static_cast<double>(number->left) * factor);
    }
    return true;
  }
  bool AtEnd() const override { return true; }

 private:
  const Gradient& gradient_;
  RowNumbers& rows_;
};

// Numbers that are as many in each world.
class SameNumbers final : public FollowNoise::Answers {
 public:
  explicit SameNumbers(Steps steps) : steps_(std::move(steps)) {}
  bool Grid(double stddev, std::span<int64_t> values) override {
    if (stddev != steps_.stddev || values.size() > steps_.values.size() - next_) return false;
    for (int64_t& value : values) {
      const Number& number = steps_.values[next_++];
      Moved(value, number.sum);
      value = number.left;
    }
    return true;
  }
  bool AtEnd() const override { return next_ == steps_.values.size(); }

 private:
  const Steps steps_;
  size_t next_ = 0;
};

// A noised count for each touched row, then skips over the others.
class Threshold final : public FollowNoise::Answers {
 public:
  Threshold(const TwinNoise::Query& query, Steps steps, const Rows& written, const Rows& vocabulary,
            Rows own)
      : stddev_(steps.stddev), written_(written), own_(std::move(own)) {
    for (size_t i = 0; i < query.rows.size(); ++i) {
      there_[query.rows[i]] = steps.values[i];
      if (!Contains(own_, query.rows[i])) Moved(0, steps.values[i].sum);
    }
    Rows places;
    for (const uint64_t row : written) {
      if (Contains(own_, row)) continue;
      const auto place = std::ranges::lower_bound(vocabulary, row) - vocabulary.begin();
      places.push_back(vocabulary.empty() ? row : static_cast<uint64_t>(place));
    }
    hits_ = Hits(std::move(places));
  }
  bool Grid(double stddev, std::span<int64_t> values) override {
    if (stddev != stddev_ || values.size() != own_.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto found = there_.find(own_[i]);
      const bool is_there = found != there_.end(), kept = Contains(written_, own_[i]);
      Moved(values[i], is_there ? found->second.sum : 0);
      values[i] = is_there ? found->second.left : kept ? kFarAbove : -kFarAbove;
    }
    return true;
  }
  std::optional<uint64_t> Skip() override { return hits_.Skip(); }
  bool AtEnd() const override { return hits_.at_end(); }

 private:
  const double stddev_;
  const Rows& written_;
  const Rows own_;
  std::map<uint64_t, Number> there_;
  Hits hits_;
};

// One-shot Gumbel top-k (mechanism/choice/gumbel_top.h), for scores that are far below 16 scales.
// Winners without a score come first, then winners with one, then all others.
class Choice final : public FollowNoise::Answers {
 public:
  Choice(const Rows& winners, const Rows& scored, uint64_t space) {
    uint64_t without = 0;  // winners without a score
    for (const uint64_t row : winners) without += !Contains(scored, row);
    for (const uint64_t row : scored)
      draws_.push_back(Contains(winners, row) ? std::exp(-std::exp(-12.0)) : 0x1p-53);
    draws_.insert(draws_.end(), without, 1 - 0x1p-53);
    const uint64_t unscored = space - scored.size();
    if (without < winners.size() && without < unscored) draws_.push_back(0x1p-53);
    // Floyd's method takes what it draws, where that ascends.
    uint64_t top = unscored - without, before = 0;
    auto next = scored.begin();
    for (const uint64_t row : winners) {
      if (Contains(scored, row)) continue;
      for (; next != scored.end() && *next < row; ++next) ++before;
      draws_.push_back((static_cast<double>(row - before) + 0.5) / static_cast<double>(++top));
    }
  }
  std::optional<double> Uniform() override {
    if (AtEnd()) return {};
    return draws_[next_++];
  }
  bool AtEnd() const override { return next_ == draws_.size(); }

 private:
  std::vector<double> draws_;
  size_t next_ = 0;
};

// Sums of rows (mechanism/row_sums.h): of tables that are released whole; then, table by table, of
// rows whose noised count reaches a threshold; then further numbers.
class SumsByTable final : public FollowNoise::Answers {
 public:
  SumsByTable(const TapedStep& step, size_t query, const AskedRows& asked, const Rows& own) {
    std::vector<const Call*> calls;
    for (const Call& call : step.calls)
      if (call.query == query) calls.push_back(&call);
    auto next = calls.begin();
    stddev_ = (*next)->asked;
    sums_.push_back((*next)->after);
    whole_ = (*next++)->before;
    for (const RowSpace::Table& table : asked.space.tables()) {
      if (table.rows <= asked.whole_most) continue;
      const Rows touched = Within(step.queries[query].rows, table), here = Within(own, table);
      const std::vector<int64_t>& counts = (*next++)->after;
      std::map<uint64_t, int64_t> count_of;
      for (size_t i = 0; i < touched.size(); ++i) count_of[touched[i]] = counts[i];
      std::map<uint64_t, int64_t> kept;  // rows with their counts
      for (uint64_t place = 0; (*next)->kind == Kind::kNumber; ++place) {
        place += static_cast<uint64_t>((*next++)->given[0]);
        int64_t above = 0;  // the last of these draws was taken
        for (; (*next)->kind == Kind::kNumber && IsTail(**next); next += 2)
          above = CountOf((*next)->given[0], (*(next + 1))->given[0]);
        if (place < table.rows && !count_of.contains(table.first + place))
          kept[table.first + place] = above;
      }
      const std::vector<int64_t>& sums = (*next++)->after;
      KeepLargest(count_of, sums.size() - kept.size(), &kept);
      std::vector<int64_t> here_counts;
      Rows places;
      for (const uint64_t row : here) {
        const auto found = kept.find(row);
        const auto there = count_of.find(row);
        here_counts.push_back(found != kept.end()       ? found->second
                              : there != count_of.end() ? there->second
                                                        : -kFarAbove);
      }
      std::vector<int64_t> tails;
      for (const auto& [row, count] : kept) {
        if (Contains(here, row)) continue;
        places.push_back(row - table.first);
        tails.push_back(count);
      }
      sums_.push_back(std::move(here_counts));
      sums_.push_back(sums);
      hits_.push_back({Hits(std::move(places)), std::move(tails)});
    }
    sums_.push_back((*next)->after);
    numbers_ = (*next)->before;
  }

  bool Grid(double stddev, std::span<int64_t> values) override {
    if (stddev != stddev_ || AtEnd() || values.size() != sums_[next_].size()) return false;
    // Rows of tables that are not whole are not compared.
    if (next_ == 0)
      for (size_t i = 0; i < values.size(); ++i) Moved(values[i], whole_[i]);
    if (next_ + 1 == sums_.size())
      for (size_t i = 0; i < values.size(); ++i) Moved(values[i], numbers_[i]);
    std::ranges::copy(sums_[next_++], values.begin());
    return true;
  }
  std::optional<uint64_t> Skip() override {
    if (next_ % 2 == 1 || next_ == 0 || next_ / 2 > hits_.size()) return {};
    tail_ = hits_[next_ / 2 - 1].hits.at_end() ? 0 : tail_ + 1;
    return hits_[next_ / 2 - 1].hits.Skip();
  }
  std::optional<double> Tail() override {
    return (static_cast<double>(hits_[next_ / 2 - 1].counts[tail_ - 1]) - 0.5) / stddev_;
  }
  // The dither that is 1.
  std::optional<double> Uniform() override { return 0.5 + 0x1p-40; }
  bool AtEnd() const override { return next_ == sums_.size(); }

 private:
  struct TableHits {
    Hits hits;
    std::vector<int64_t> counts;
  };

  static Rows Within(const Rows& rows, const RowSpace::Table& table) {
    const auto begin = std::ranges::lower_bound(rows, table.first);
    return {begin, std::ranges::lower_bound(begin, rows.end(), table.first + table.rows)};
  }
  // Skips have a chance below 1; tails begin some deviations out.
  static bool IsTail(const Call& call) { return call.asked > 1; }
  int64_t CountOf(double tail, double uniform) const {
    const int bits = noise::DitherBits(stddev_);
    return static_cast<int64_t>(std::floor(stddev_ * tail)) +
           static_cast<int64_t>(uniform * std::ldexp(1, bits)) + 1 - (int64_t{1} << (bits - 1));
  }
  static void KeepLargest(const std::map<uint64_t, int64_t>& count_of, size_t most,
                          std::map<uint64_t, int64_t>* kept) {
    std::vector<std::pair<int64_t, uint64_t>> order;
    for (const auto& [row, count] : count_of) order.emplace_back(-count, row);
    std::ranges::sort(order);
    for (size_t i = 0; i < most; ++i) (*kept)[order[i].second] = -order[i].first;
  }

  double stddev_ = 0;
  std::vector<std::vector<int64_t>> sums_;  // that left, by call
  std::vector<int64_t> whole_, numbers_;    // before noise
  std::vector<TableHits> hits_;             // by table that is not whole
  size_t next_ = 0;
  size_t tail_ = 0;
};

}  // namespace

class FollowNoise::Step {
 public:
  Step(const TapedStep& tape, const AskedRows& asked)
      : tape_(tape), asked_(asked), gradient_(tape, asked.space) {}

  // The answers to the step's next query; null if this is not it.
  std::unique_ptr<Answers> Next(const noise::Declared& declared) {
    if (next_ == tape_.queries.size()) return nullptr;
    const TwinNoise::Query& query = tape_.queries[next_];
    if (query.name != declared.query || query.bound != declared.bound) return nullptr;
    return AnswersTo(query, next_++, {declared.rows.begin(), declared.rows.end()});
  }
  bool AtEnd() const { return next_ == tape_.queries.size() && (!nobody_ || nobody_->at_end()); }

 private:
  std::unique_ptr<Answers> AnswersTo(const TwinNoise::Query& query, size_t place, Rows own) {
    if (query.name == "gradient" && query.bound > 0) {
      if (gradient_.has_nobody()) nobody_.emplace(gradient_, gradient_.RowsBeside(own));
      return std::make_unique<GradientSums>(gradient_, std::move(own));
    }
    if (query.name == "gradient")
      return nobody_ ? std::make_unique<RowsOfNobody>(gradient_, *nobody_) : nullptr;
    if (query.name == "threshold")
      return std::make_unique<Threshold>(query, StepsOf(tape_, place), gradient_.rows(),
                                         tape_.vocabulary, std::move(own));
    if (query.name == "row choice")
      return std::make_unique<Choice>(gradient_.rows(), own, asked_.space.rows());
    if (query.name == "top rows")
      return std::make_unique<Choice>(tape_.vocabulary, own, asked_.space.rows());
    if (query.name == "sums") return std::make_unique<SumsByTable>(tape_, place, asked_, own);
    return std::make_unique<SameNumbers>(StepsOf(tape_, place));
  }

  const TapedStep& tape_;
  const AskedRows& asked_;
  const Gradient gradient_;
  std::optional<RowNumbers> nobody_;
  size_t next_ = 0;
};

FollowNoise::FollowNoise(AskedRows rows) : rows_(std::move(rows)) {}
FollowNoise::~FollowNoise() = default;

void FollowNoise::Follow(const TapedStep& step) { step_ = std::make_unique<Step>(step, rows_); }

std::string FollowNoise::End() {
  if (!step_->AtEnd()) Stray("asks less");
  answers_ = nullptr;
  step_ = nullptr;
  return std::exchange(strayed_, {});
}

void FollowNoise::Stray(std::string_view how) {
  if (strayed_.empty()) strayed_ = fmt::format("{}{}{}", query_, query_.empty() ? "" : " ", how);
}

void FollowNoise::Declare(const noise::Declared& declared) {
  if (answers_ && !answers_->AtEnd()) Stray("draws less");
  if (answers_ && bound_ > 0) {
    double& most = moved_[query_];
    most = std::max(most, std::sqrt(answers_->MovedSquared()) / bound_);
  }
  answers_ = nullptr;
  query_ = declared.query;
  bound_ = declared.bound;
  if (declared.query.empty()) return;
  if (step_) answers_ = step_->Next(declared);
  if (!answers_) Stray("is another query");
}

void FollowNoise::AddGridGaussian(double stddev, std::span<int64_t> values) {
  if (!answers_ || !answers_->Grid(stddev, values)) Stray("draws other sums");
}
void FollowNoise::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  if (!answers_ || !answers_->Fill(stddev, factor, out)) Stray("draws other rows of nobody");
}
uint64_t FollowNoise::GeometricSkip(double) {
  const auto skip = answers_ ? answers_->Skip() : std::nullopt;
  if (!skip) Stray("draws another skip");
  return skip.value_or(kBeyondAll);
}
double FollowNoise::Uniform() {
  const auto uniform = answers_ ? answers_->Uniform() : std::nullopt;
  if (!uniform) Stray("draws another uniform");
  return uniform.value_or(0.5);
}
double FollowNoise::GaussianTail(double lower) {
  const auto tail = answers_ ? answers_->Tail() : std::nullopt;
  if (!tail || *tail < lower) Stray("draws another tail");
  return std::max(lower, tail.value_or(lower));
}

void FollowNoise::AddGaussian(double, std::span<float>) { Stray("draws floats"); }
void FollowNoise::FillGaussian(std::span<double>) { Stray("draws floats"); }
bool FollowNoise::Bernoulli(double p) {
  Stray("draws a coin");
  return p > 0.5;
}
void FollowNoise::FillKey(std::span<uint8_t, 32> key) {
  Stray("draws a key");
  std::ranges::fill(key, uint8_t{0});
}

}  // namespace tacit::tape
