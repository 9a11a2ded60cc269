#include "metrics/registry.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <map>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "metrics/families.h"

namespace tacit::metrics {
namespace internal {

// A histogram's cells. prometheus::Histogram locks on every observation; these cells do not.
struct HistogramCells {
  explicit HistogramCells(std::span<const double> upper_bounds)
      : bounds(upper_bounds.begin(), upper_bounds.end()), counts(bounds.size() + 1) {}

  const std::vector<double> bounds;
  std::vector<std::atomic<uint64_t>> counts;  // not cumulative; the last is above all bounds
  std::atomic<double> sum{0};
};

}  // namespace internal
namespace {

// One set of labels of a family. Never moves, since handles point into it.
struct Series {
  Labels labels;
  uint64_t owners = 0;  // registrations that were not removed
  std::atomic<double> value{0};
  std::unique_ptr<internal::HistogramCells> histogram;
};

// The names of sorted labels, as a family declares them.
std::string NamesOf(const Labels& labels) {
  std::string names;
  for (const auto& [name, value] : labels) names += (names.empty() ? "" : ",") + name;
  return names;
}

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kGauge:
      return prometheus::MetricType::Gauge;
    case Kind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

// Writes the buckets as Prometheus wants them: cumulative and ending with +Inf. The total is their
// sum, so that a scrape in the middle of an observation is consistent in itself.
void CollectHistogram(const internal::HistogramCells& cells, prometheus::ClientMetric* out) {
  uint64_t cumulative = 0;
  for (size_t i = 0; i < cells.counts.size(); ++i) {
    cumulative += cells.counts[i].load(std::memory_order_relaxed);
    prometheus::ClientMetric::Bucket bucket;
    bucket.cumulative_count = cumulative;
    bucket.upper_bound = i < cells.bounds.size() ? cells.bounds[i] : INFINITY;
    out->histogram.bucket.push_back(bucket);
  }
  out->histogram.sample_count = cumulative;
  out->histogram.sample_sum = cells.sum.load(std::memory_order_relaxed);
}

prometheus::ClientMetric Collect(Kind kind, const Series& series) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : series.labels) {
    prometheus::ClientMetric::Label label;
    label.name = name;
    label.value = value;
    metric.label.push_back(std::move(label));
  }
  const double value = series.value.load(std::memory_order_relaxed);
  if (kind == Kind::kCounter) metric.counter.value = value;
  if (kind == Kind::kGauge) metric.gauge.value = value;
  if (series.histogram != nullptr) CollectHistogram(*series.histogram, &metric);
  return metric;
}

}  // namespace

struct Registry::Impl {
  // Recursive: what a scrape refreshes may be the last to hold an owner, who then removes its own.
  mutable RecursiveMutex mutex;
  // The series by the family's name.
  std::map<std::string_view, std::list<Series>> families TACIT_GUARDED_BY(mutex);
  std::vector<std::function<void()>> refresh TACIT_GUARDED_BY(mutex);

  // Returns the series with these labels and creates it if needed.
  Series& Declare(const Family& family, Labels labels) TACIT_REQUIRES(mutex);
};

Series& Registry::Impl::Declare(const Family& family, Labels labels) {
  std::sort(labels.begin(), labels.end());
  TACIT_CHECK(NamesOf(labels) == family.labels, family.name);
  std::list<Series>& all = families[family.name];
  for (Series& series : all) {
    if (series.labels != labels) continue;
    ++series.owners;
    return series;
  }
  Series& series = all.emplace_back();
  series.labels = std::move(labels);
  series.owners = 1;
  return series;
}

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter Registry::AddCounter(CounterName name, const Labels& labels) {
  const MutexLock lock(impl_->mutex);
  return Counter(&impl_->Declare(name.family(), labels).value);
}

Gauge Registry::AddGauge(GaugeName name, const Labels& labels) {
  const MutexLock lock(impl_->mutex);
  return Gauge(&impl_->Declare(name.family(), labels).value);
}

Histogram Registry::AddHistogram(HistogramName name, std::span<const double> bounds,
                                 const Labels& labels) {
  const Family& family = name.family();
  TACIT_CHECK(!bounds.empty() && std::is_sorted(bounds.begin(), bounds.end()), family.name);
  const MutexLock lock(impl_->mutex);
  Series& series = impl_->Declare(family, labels);
  if (series.histogram == nullptr)
    series.histogram = std::make_unique<internal::HistogramCells>(bounds);
  TACIT_CHECK(std::equal(bounds.begin(), bounds.end(), series.histogram->bounds.begin(),
                         series.histogram->bounds.end()),
              fmt::format("metric '{}' has two sets of buckets", family.name));
  return Histogram(series.histogram.get());
}

void Histogram::Observe(double value) const {
  if (cells_ == nullptr) return;
  // Prometheus counts a value in the first bucket whose bound is not below it.
  const auto& bounds = cells_->bounds;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  cells_->counts[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  internal::AtomicAdd(cells_->sum, value);
}

std::vector<double> ExponentialBounds(double start, double factor, size_t count) {
  std::vector<double> bounds(count);
  for (double& bound : bounds) {
    bound = std::strtod(fmt::format("{:.6g}", start).c_str(), nullptr);
    start *= factor;
  }
  return bounds;
}

void Registry::Remove(const Family& family, const Labels& labels) {
  Labels sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  const MutexLock lock(impl_->mutex);
  std::list<Series>& all = impl_->families[family.name];
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Series& series) { return series.labels == sorted; });
  TACIT_CHECK(at != all.end(), family.name);
  if (--at->owners == 0) all.erase(at);
}

void Registry::BeforeScrape(std::function<void()> refresh) {
  const MutexLock lock(impl_->mutex);
  impl_->refresh.push_back(std::move(refresh));
}

std::string Registry::Scrape(Audience reader) const {
  const MutexLock lock(impl_->mutex);
  for (const auto& refresh : impl_->refresh) refresh();
  std::vector<prometheus::MetricFamily> visible;
  for (const Family& family : kFamilies) {
    const auto series = impl_->families.find(family.name);
    if (series == impl_->families.end() || family.audience > reader) continue;
    prometheus::MetricFamily out;
    out.name = family.name;
    out.help = family.help;
    out.type = TypeOf(family.kind);
    for (const Series& one : series->second) out.metric.push_back(Collect(family.kind, one));
    visible.push_back(std::move(out));
  }
  return prometheus::TextSerializer().Serialize(visible);
}

}  // namespace tacit::metrics
