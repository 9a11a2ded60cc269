#include "train/watch/stream_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "event/feature_transform.h"
#include "metrics/families.h"

namespace tacit::train {
namespace {

constexpr std::chrono::seconds kWindow(1);
constexpr uint64_t kFewestLooks = 500;
constexpr uint64_t kLooks = 20'000;
constexpr uint64_t kMoreLooks = 2'500;  // before the stride is doubled once more
// Windows in which values are only collected: before, every value is new.
constexpr uint32_t kWindowsToKnow = 3;
// Times this far apart are of other units, or of another century.
constexpr uint64_t kDecadeMs = uint64_t{10} * 365 * 86'400'000;

// The least jumps. A label rate is followed as log odds: a jump is a factor of three.
constexpr double kLeastOdds = 1.1, kLeastMissing = 0.2, kLeastUnseen = 0.2,
                 kLeastUnseenInAll = 0.06, kLeastRepeats = 0.15, kLeastTimes = 0.05,
                 kLeastUsers = 0.15;
constexpr std::array<const char*, 6> kKindNames = {"label",   "missing", "values",
                                                   "repeats", "times",   "users"};

double LogOdds(double rate) {
  const double inside = std::clamp(rate, 0.001, 0.999);
  return std::log(inside / (1 - inside));
}

// The distance of any two times, which no signed number holds.
uint64_t MsApart(int64_t a, int64_t b) {
  const auto from = static_cast<uint64_t>(std::min(a, b));
  return static_cast<uint64_t>(std::max(a, b)) - from;
}

double Rate(double log_odds) { return 1 / (1 + std::exp(-log_odds)); }

}  // namespace

StreamWatch::StreamWatch(const event::FeatureSchema& schema, const Clock& clock,
                         metrics::Registry& registry)
    : clock_(clock),
      dense_(schema.dense.size()),
      window_began_(clock.Now()),
      looks_at_this_stride_(kLooks) {
  label_figure_ = AddFigure(kLabel, "the label rate", kLeastOdds);
  const auto add_column = [this](const std::string& name) -> Column& {
    columns_.emplace_back();
    columns_.back().missing_figure =
        AddFigure(kMissing, fmt::format("the share of records without '{}'", name), kLeastMissing);
    return columns_.back();
  };
  for (const event::DenseFeature& feature : schema.dense) add_column(feature.name);
  for (const event::CategoricalFeature& feature : schema.categorical)
    add_column(feature.name).unseen_figure = AddFigure(
        kUnseen, fmt::format("the share of new values in '{}'", feature.name), kLeastUnseen);
  unseen_in_all_figure_ =
      AddFigure(kUnseen, "the share of new values in all features", kLeastUnseenInAll);
  repeats_figure_ = AddFigure(kRepeats, "the share of records that came before", kLeastRepeats);
  times_figure_ = AddFigure(kTimes, "the share of timestamps a decade away", kLeastTimes);
  users_figure_ = AddFigure(kUsers, "the share of frequent users who stay away", kLeastUsers);
  const RowSpace rows = schema.MakeRowSpace();
  for (const RowSpace::Table& table : rows.tables()) missing_row_.push_back(table.first);
  for (const char* kind : kKindNames)
    unusual_.push_back(registry.AddGauge("tacit_stream_unusual", {{"of", kind}}));
}

size_t StreamWatch::AddFigure(Kind kind, std::string what, double least_jump) {
  figures_.push_back({kind, std::move(what), Usual(least_jump)});
  return figures_.size() - 1;
}

void StreamWatch::See(const event::Batch& batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    repeats_.See(batch, i);
    if (!batch.user.empty()) users_.See(batch.user[i]);
  }
  for (; next_look_ < batch.size(); next_look_ += stride_) Look(batch, next_look_);
  next_look_ -= batch.size();
  records_ += batch.size();
  // The first window does not know the rate yet, and a rate may rise.
  if (looked_at_ >= looks_at_this_stride_) {
    stride_ *= 2;
    looks_at_this_stride_ = looked_at_ + kMoreLooks;
  }
  if (looked_at_ >= kFewestLooks && clock_.Now() - window_began_ >= kWindow) EndWindow();
}

void StreamWatch::Look(const event::Batch& batch, size_t example) {
  ++looked_at_;
  positive_ += batch.label[example] > 0.5f ? 1 : 0;
  const float* const dense = batch.dense.data() + example * dense_;
  for (size_t i = 0; i < dense_; ++i)
    columns_[i].missing += dense[i] == 0 && std::signbit(dense[i]) ? 1 : 0;
  for (size_t slot = 0; slot < batch.slots; ++slot) {
    Column& column = columns_[dense_ + slot];
    for (const uint64_t row : batch.Slot(example, slot)) {
      if (row == missing_row_[slot])
        ++column.missing;
      else
        column.values.See(row);
    }
  }
  // A record's own time may be that at which the source took it, to the millisecond.
  if (const int64_t time = batch.timestamp_ms[example]; time != 0) times_.push_back(time);
}

void StreamWatch::EndWindow() {
  See(label_figure_, LogOdds(static_cast<double>(positive_) / static_cast<double>(looked_at_)));
  EndColumns();
  EndTimes();
  if (const auto share = repeats_.EndWindow()) See(repeats_figure_, *share);
  if (const auto share = users_.EndWindow(!figures_[users_figure_].usual.outside()))
    See(users_figure_, *share);
  Tell();
  const double seconds = Seconds(clock_.Now() - window_began_);
  const double rate = static_cast<double>(records_) / std::max(seconds, 1e-3);
  stride_ = std::max<uint64_t>(1, static_cast<uint64_t>(rate * Seconds(kWindow) / kLooks));
  next_look_ %= stride_;
  window_began_ = clock_.Now();
  ++windows_;
  records_ = looked_at_ = positive_ = 0;
  looks_at_this_stride_ = kLooks;
}

// Values of another topic meet known ones in a table's rows, so that a single column may hardly
// tell them; what all columns have on average wavers less, and a new category is in one alone.
double StreamWatch::NewShareOfAll() const {
  double sum = 0;
  for (size_t i = dense_; i < columns_.size(); ++i) sum += columns_[i].values.new_share();
  return sum / static_cast<double>(columns_.size() - dense_);
}

void StreamWatch::EndColumns() {
  const bool several = columns_.size() - dense_ > 1;
  if (several && windows_ >= kWindowsToKnow) See(unseen_in_all_figure_, NewShareOfAll());
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    See(column.missing_figure,
        static_cast<double>(std::exchange(column.missing, 0)) / static_cast<double>(looked_at_));
    if (i < dense_) continue;
    if (windows_ >= kWindowsToKnow) See(column.unseen_figure, column.values.new_share());
    // Values of a window that is out of the usual may be another topic's: they stay new.
    column.values.EndWindow(!figures_[column.unseen_figure].usual.outside() &&
                            !figures_[unseen_in_all_figure_].usual.outside());
  }
}

// Times are compared with the median of the last usual window: a log of years ago is as usual as
// one of today.
void StreamWatch::EndTimes() {
  if (times_.size() < kFewestLooks / 2) {
    times_.clear();
    return;
  }
  const auto middle = times_.begin() + static_cast<ptrdiff_t>(times_.size() / 2);
  std::ranges::nth_element(times_, middle);
  if (usual_time_ == 0) usual_time_ = *middle;
  const auto away = std::ranges::count_if(
      times_, [this](int64_t time) { return MsApart(time, usual_time_) > kDecadeMs; });
  See(times_figure_, static_cast<double>(away) / static_cast<double>(times_.size()));
  if (!figures_[times_figure_].usual.outside()) usual_time_ = *middle;
  times_.clear();
}

void StreamWatch::See(size_t figure, double value) { figures_[figure].usual.See(value); }

std::string StreamWatch::Changed(const Figure& figure) const {
  double now = figure.usual.last(), before = figure.usual.mean();
  if (figure.kind == kLabel) {
    now = Rate(now);
    before = Rate(before);
  }
  return fmt::format("{} is {:.1f} %, and was {:.1f} %", figure.what, 100 * now, 100 * before);
}

void StreamWatch::Tell() {
  std::vector<std::string> changed;
  std::array<double, kKinds> unusual{};
  for (Figure& figure : figures_) {
    const bool is = figure.usual.unusual();
    if (is) {
      ++unusual[figure.kind];
      changed.push_back(Changed(figure));
      if (!figure.told)
        spdlog::warn("the stream has changed at once: {} (records looked at: {})", changed.back(),
                     WithThousands(looked_at_));
    } else if (figure.told) {
      spdlog::info("the stream: {} is usual again, or usual from now on", figure.what);
    }
    figure.told = is;
  }
  for (size_t kind = 0; kind < kKinds; ++kind) unusual_[kind].Set(unusual[kind]);
  constexpr size_t kNamed = 4;
  const size_t all = changed.size();
  if (all > kNamed) {
    changed.resize(kNamed);
    changed.push_back(fmt::format("and {} more", all - kNamed));
  }
  const MutexLock lock(mutex_);
  trouble_ =
      all == 0 ? "" : fmt::format("the stream has changed at once: {}", fmt::join(changed, ", "));
}

std::string StreamWatch::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

}  // namespace tacit::train
