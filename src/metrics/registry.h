#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacit::metrics {

// The readers who may see a metric. Values computed from raw events without noise (training loss,
// clip fraction, hot keys, per-partition counts) are for the operator; committed state, budgets and
// the process's own health are public.
enum class Audience : uint8_t { kPublic = 0, kOperator = 1 };

enum class Kind : uint8_t { kCounter, kGauge, kHistogram };

struct Family;

// The name of a metric of one kind, as families.h declares it; another name does not compile.
template <Kind kind>
class Declared {
 public:
  consteval Declared(const char* name);  // families.h defines it
  const Family& family() const { return *family_; }

 private:
  const Family* family_;
};
using CounterName = Declared<Kind::kCounter>;
using GaugeName = Declared<Kind::kGauge>;
using HistogramName = Declared<Kind::kHistogram>;

// {"learner", "ctr"}
using Label = std::pair<std::string, std::string>;
using Labels = std::vector<Label>;

namespace internal {
struct HistogramCells;
// Performs += on a double that other threads add to at the same time.
inline void AtomicAdd(std::atomic<double>& cell, double amount) {
  cell.fetch_add(amount, std::memory_order_relaxed);
}
}  // namespace internal

// Handles on metrics: one pointer, copied freely, thread-safe, used without a lock or look-up;
// valid while the registry lives. A default-constructed handle does nothing.

// A metric that only goes up.
class Counter {
 public:
  Counter() = default;
  void Add(double amount = 1) const {
    if (cell_ != nullptr) internal::AtomicAdd(*cell_, amount);
  }
  // Brings a count that is kept elsewhere up to date; one that is lower changes nothing. REQUIRES
  // that one thread at a time does so.
  void RaiseTo(double total) const {
    if (cell_ != nullptr && total > value()) cell_->store(total, std::memory_order_relaxed);
  }
  double value() const { return cell_ == nullptr ? 0 : cell_->load(std::memory_order_relaxed); }

 private:
  friend class Registry;
  explicit Counter(std::atomic<double>* cell) : cell_(cell) {}
  std::atomic<double>* cell_ = nullptr;
};

// A metric that goes up and down.
class Gauge {
 public:
  Gauge() = default;
  void Set(double value) const {
    if (cell_ != nullptr) cell_->store(value, std::memory_order_relaxed);
  }
  void Add(double amount) const {
    if (cell_ != nullptr) internal::AtomicAdd(*cell_, amount);
  }
  double value() const { return cell_ == nullptr ? 0 : cell_->load(std::memory_order_relaxed); }

 private:
  friend class Registry;
  explicit Gauge(std::atomic<double>* cell) : cell_(cell) {}
  std::atomic<double>* cell_ = nullptr;
};

// Counts of the values that fell into each bucket.
class Histogram {
 public:
  Histogram() = default;
  void Observe(double value) const;

 private:
  friend class Registry;
  explicit Histogram(internal::HistogramCells* cells) : cells_(cells) {}
  internal::HistogramCells* cells_ = nullptr;
};

// Returns `count` upper bounds: start, start * factor, start * factor^2, ..., to six digits, so
// that they read as they were meant.
std::vector<double> ExponentialBounds(double start, double factor, size_t count);

// All metrics of a process. Register at start-up, since registering takes a lock; registering a
// name and labels again returns a handle on the same numbers. Labels other than those declared are
// a programmer error. Thread-safe.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter AddCounter(CounterName name, const Labels& labels = {});
  Gauge AddGauge(GaugeName name, const Labels& labels = {});
  // `bounds` are the ascending upper bounds of the buckets; the bucket above the last is implied.
  Histogram AddHistogram(HistogramName name, std::span<const double> bounds,
                         const Labels& labels = {});

  // Gives back one registration of this name and labels; with the last one the numbers go, and no
  // scrape shows them any more. For labels that come and go: each owner registers once, and removes
  // once. REQUIRES that the owner's handle is not used afterwards.
  template <Kind kind>
  void Remove(Declared<kind> name, const Labels& labels) {
    Remove(name.family(), labels);
  }

  // `refresh` runs at the start of every scrape, for gauges that are cheaper to read then than to
  // keep up to date (cache sizes, queue lengths). It registers nothing.
  void BeforeScrape(std::function<void()> refresh);

  // Returns everything `reader` may see, in the Prometheus text format 0.0.4, ordered by name.
  std::string Scrape(Audience reader) const;

 private:
  struct Impl;
  void Remove(const Family& family, const Labels& labels);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tacit::metrics
