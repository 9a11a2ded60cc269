#include "system/kafka/oracle.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/hash.h"
#include "model/pctr.h"
#include "store/store.h"
#include "wiring/assembly.h"

namespace tacit::test {
namespace {

constexpr uint32_t kDim = 4;
constexpr uint32_t kHidden = 8;
constexpr uint64_t kModelSeed = 1;
// A step moves a row by about a tenth of its length: far above float's rounding, and little enough
// that two applications in one step and in two are told apart from one and three alike.
constexpr double kRowRate = 0.16;
// Far below what a float next to a weight can show.
constexpr double kDenseRate = 1e-30;

event::FeatureSchema Schema() {
  event::FeatureSchema schema;
  schema.dense.push_back({"I1", event::DenseTransform::kIdentity});
  schema.categorical.push_back({.name = "E", .buckets = Oracle::kBuckets, .dim = kDim});
  return schema;
}

std::vector<double> InitialDense(const RowSpace& space) {
  const auto backend = ops::MakeReferenceBackend();
  const model::Pctr model({.space = space, .dense_width = 1, .hidden = {kHidden}}, *backend);
  const std::vector<float> dense = model.InitialDense(kModelSeed);
  return {dense.begin(), dense.end()};
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squared = 0;
  for (size_t i = 0; i < a.size(); ++i) squared += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squared);
}

Result<wiring::Assembly> LoadAssembly(const std::string& config_path) {
  TACIT_ASSIGN(config::Config config, config::Load(config_path, {}));
  return wiring::Assemble(std::move(config));
}

}  // namespace

Oracle::Oracle(uint64_t seed) : seed_(seed), transform_(Schema()), row_taken_(kBuckets) {
  model_ = {.space = transform_.row_space(), .dense_width = 1, .hidden = {kHidden}};
  dense_ = InitialDense(model_.space);
}

size_t Oracle::Invent(bool bad) {
  for (;;) {
    // The number of the event stands in its value, so that a record shows which one it is.
    const uint64_t salt = tried_++;
    Event event{.value = fmt::format("{:x}-{:x}-e{}", seed_, salt, events_.size()),
                .label = static_cast<float>(salt % 2),
                .bad = bad};
    event.row = transform_.Row(0, event.value);
    if (row_taken_[event.row] || !IsVisible(event)) continue;
    row_taken_[event.row] = true;
    events_.push_back(std::move(event));
    return events_.size() - 1;
  }
}

std::string Oracle::Line(size_t number) const {
  const Event& event = events_[number];
  return fmt::format("{}\t1\t{}", event.bad ? 2 : static_cast<int>(event.label), event.value);
}

std::string Oracle::Json(size_t number, const std::string& user) const {
  const Event& event = events_[number];
  return fmt::format(R"({{"label":{},"user":"{}","event_id":"{}","features":{{"I1":1,"E":"{}"}}}})",
                     event.bad ? 2 : static_cast<int>(event.label), user, number, event.value);
}

std::optional<size_t> Oracle::EventIn(std::string_view record) const {
  const std::string prefix = fmt::format("{:x}-", seed_);
  const size_t value = record.find(prefix);
  if (value == std::string_view::npos) return std::nullopt;
  const size_t mark = record.find("-e", value + prefix.size());
  if (mark == std::string_view::npos) return std::nullopt;
  size_t number = 0;
  const auto [end, error] =
      std::from_chars(record.data() + mark + 2, record.data() + record.size(), number);
  if (error != std::errc() || number >= events_.size()) return std::nullopt;
  return number;
}

std::string Oracle::Yaml(bool periods, bool users) {
  const std::string frozen =
      fmt::format("    optimizer: {{kind: sgd, learning_rate: {}, row_learning_rate: {}}}\n",
                  kDenseRate, kRowRate);
  std::string yaml = fmt::format(
      "schema:\n"
      "  features:\n"
      "    - {{name: I1, kind: dense, transform: identity}}\n"
      "    - {{name: E, kind: categorical, buckets: {}, dim: {}}}\n"
      "learners:\n"
      "  - id: exact\n"
      "    model: {{kind: pctr, hidden: [{}], seed: {}}}\n"
      "    mechanism: {{kind: none}}\n"
      "    participation: {{mode: once, batch: {}}}\n"
      "    privacy: {{unit: event, epsilon: .inf, delta: {}}}\n{}",
      kBuckets, kDim, kHidden, kModelSeed, kBatch, kDelta, frozen);
  if (periods) {
    yaml += fmt::format(
        "  - id: period\n"
        "    model: {{kind: pctr, hidden: [{}], seed: {}}}\n"
        "    mechanism: {{kind: none}}\n"
        "    participation: {{mode: poisson, batch: {}, sampling_rate: 1, steps_per_period: {}, "
        "period: {}}}\n"
        "    privacy: {{unit: event, epsilon: .inf, delta: {}}}\n{}",
        kHidden, kModelSeed, kBatch, kStepsPerPeriod, kPeriod, kDelta, frozen);
  }
  return yaml + fmt::format(
                    "  - id: private\n"
                    "    model: {{kind: pctr, hidden: [4], categorical: false}}\n"
                    "    mechanism: {{kind: dp-sgd}}\n"
                    "    participation: {{mode: once, batch: {}{}}}\n"
                    "    privacy: {{unit: {}, epsilon: {}, delta: {}}}\n"
                    "    optimizer: {{kind: sgd, learning_rate: 0.01}}\n",
                    kBatch, users ? fmt::format(", max_participations: {}", kAllowance) : "",
                    users ? "user" : "event", kEpsilon, kDelta);
}

double Oracle::EpsilonAfter(uint64_t steps, bool users) {
  if (steps == 0) return 0;
  if (!users) return kEpsilon;
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
  const auto delta = [&](double mu, double epsilon) {
    return phi(mu / 2 - epsilon / mu) - std::exp(epsilon) * phi(-mu / 2 - epsilon / mu);
  };
  // Finds where a monotone function passes zero.
  const auto zero = [](auto f, double low, double high) {
    const bool rises = f(high) > 0;
    for (int i = 0; i < 200; ++i) {
      const double middle = (low + high) / 2;
      (f(middle) > 0) == rises ? high = middle : low = middle;
    }
    return high;
  };
  const double all = zero([&](double mu) { return delta(mu, kEpsilon) - kDelta; }, 1e-3, 10);
  const double mu = all * std::sqrt(static_cast<double>(std::min(steps, kAllowance)) /
                                    static_cast<double>(kAllowance));
  return zero([&](double epsilon) { return delta(mu, epsilon) - kDelta; }, 0, kEpsilon + 1);
}

std::vector<double> Oracle::InitialRowOf(const Event& event) const {
  std::vector<float> row(kDim);
  InitialRow(kModelSeed, event.row, 0.05f, row);
  return {row.begin(), row.end()};
}

model::testing::LoopExample Oracle::Example(const Event& event) const {
  return {.dense = {1.0}, .slots = {{event.row}}, .label = event.label};
}

std::vector<double> Oracle::After(const Event& event, const std::vector<double>& row) const {
  const model::testing::LoopGradient gradient =
      model::testing::LoopBackward(model_, Example(event), dense_, {{event.row, row}});
  const std::vector<double>& g = gradient.rows.at(event.row);
  std::vector<double> after = row;
  for (size_t i = 0; i < after.size(); ++i) after[i] -= kRowRate / kBatch * g[i];
  return after;
}

bool Oracle::IsVisible(const Event& event) const {
  const std::vector<double> row = InitialRowOf(event);
  if (Distance(After(event, row), row) < 3e-4) return false;
  // The model's one hidden layer: weights input by input, then biases; the number 1 is the last
  // input.
  for (uint32_t unit = 0; unit < kHidden; ++unit) {
    double sum = dense_[kDim * kHidden + unit] + dense_[(kDim + 1) * kHidden + unit];
    for (uint32_t i = 0; i < kDim; ++i) sum += row[i] * dense_[i * kHidden + unit];
    if (std::abs(sum) < 0.01) return false;
  }
  return true;
}

int Oracle::TimesApplied(const Event& event, const float* values) const {
  const std::vector<double> found(values, values + kDim);
  std::vector<double> row = InitialRowOf(event);
  const double tolerance = 0.1 * Distance(After(event, row), row);
  for (int times = 0; times <= kTimesMax; ++times) {
    if (Distance(found, row) < tolerance) return times;
    row = After(event, row);
  }
  return -1;
}

Result<std::vector<int>> Oracle::Applied(const std::string& config_path, size_t learner) const {
  TACIT_ASSIGN(const wiring::Assembly assembly, LoadAssembly(config_path));
  const config::Store& config = assembly.config.store;
  TACIT_ASSIGN(const store::ReadOnlyStore opened,
               store::OpenReadOnly(config.path, config.witness, wiring::MakeLayouts(assembly)));
  return AppliedIn(*opened.snapshot, learner);
}

Result<std::vector<int>> Oracle::AppliedIn(const store::Snapshot& snapshot, size_t learner) const {
  const LearnerIndex index(static_cast<uint16_t>(learner));
  const auto dense = snapshot.Dense(index);
  if (dense == nullptr) return std::vector<int>(events_.size());
  for (size_t i = 0; i < dense_.size(); ++i)
    if (std::abs(dense->parameters[i] - dense_[i]) > 1e-12)
      return Fail(ErrorCode::kCorruption, fmt::format("dense parameter {} has moved", i));
  std::vector<uint64_t> ids(events_.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = events_[i].row;
  std::vector<float> rows(ids.size() * kDim);
  TACIT_RETURN_IF_ERROR(snapshot.Rows(index, ids, rows));
  std::vector<int> applied(events_.size());
  for (size_t i = 0; i < applied.size(); ++i)
    applied[i] = TimesApplied(events_[i], rows.data() + i * kDim);
  return applied;
}

std::vector<std::string> Oracle::Differences(const std::vector<int>& applied,
                                             const std::vector<int>& expected) const {
  constexpr size_t kShown = 20;
  std::vector<std::string> wrong;
  size_t count = 0;
  for (size_t i = 0; i < applied.size(); ++i) {
    if (applied[i] == expected[i] || ++count > kShown) continue;
    wrong.push_back(applied[i] < 0
                        ? fmt::format("event {} ({}): its row lies where no number of applications "
                                      "leads",
                                      i, events_[i].value)
                        : fmt::format("event {} ({}): applied {} times, {} expected", i,
                                      events_[i].value, applied[i], expected[i]));
  }
  if (count > kShown) wrong.push_back(fmt::format("and {} more", count - kShown));
  return wrong;
}

}  // namespace tacit::test
