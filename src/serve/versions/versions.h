#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "http/http.h"
#include "metrics/registry.h"
#include "serve/items/recommender.h"
#include "serve/versions/canary.h"
#include "store/types/snapshot.h"

// Chooses the commit that answers a request. A version is the number of a commit.
namespace tacit::serve {

// The field of a request that keeps its caller on one side of a canary. Without it the request's id
// does, and without that the body: the same question gets the same version.
inline constexpr std::string_view kCanaryField = "X-Canary-Key";

// A version that is open beside others, with all that is answered from it, and its own metrics.
// Immutable except for the metrics; thread-safe.
class ServedVersion {
 public:
  // Builds the states to recommend from, on this thread: slow. `registry` outlives it.
  ServedVersion(std::shared_ptr<const store::Snapshot> snapshot,
                std::vector<RecommendModel> recommenders, metrics::Registry& registry);
  ~ServedVersion();
  ServedVersion(const ServedVersion&) = delete;
  ServedVersion& operator=(const ServedVersion&) = delete;

  uint64_t number() const { return snapshot_->version().value; }
  const std::shared_ptr<const store::Snapshot>& snapshot() const { return snapshot_; }
  const Recommender& recommender() const { return recommender_; }
  // Counts an answer that took so long.
  void Count(double seconds, bool failed) const;

 private:
  const std::shared_ptr<const store::Snapshot> snapshot_;
  metrics::Registry& registry_;
  Recommender recommender_;
  metrics::Counter done_, failed_;
  metrics::Histogram seconds_;
};

// A snapshot and its states, which one request is answered from.
struct Answering {
  std::shared_ptr<const store::Snapshot> snapshot;  // null before the first commit
  std::shared_ptr<const Recommender> recommender;
  std::shared_ptr<const ServedVersion> version;  // null where there is one that moves on
};

// Counts an answer among those of its version, from here to the end of the scope.
class CountedAnswer {
 public:
  explicit CountedAnswer(const Answering& answering) : version_(answering.version.get()) {}
  ~CountedAnswer();
  CountedAnswer(const CountedAnswer&) = delete;
  CountedAnswer& operator=(const CountedAnswer&) = delete;
  void Failed() { failed_ = true; }

 private:
  using Clock = std::chrono::steady_clock;
  const ServedVersion* const version_;
  const Clock::time_point begin_ = Clock::now();
  bool failed_ = false;
};

// Chooses the version that answers. Thread-safe; all server threads share it.
class Versions {
 public:
  virtual ~Versions() = default;
  // `asked` is the version that the request names, if it names one. kNotFound: that one is not open
  // here; the message lists those that are.
  virtual Result<Answering> Choose(std::optional<uint64_t> asked,
                                   const http::Request& request) const = 0;
  // Answers where nothing is asked for and there is no canary.
  virtual Answering Serving() const = 0;
  // All open versions, newest first; only the served one if no others are kept.
  virtual std::vector<Answering> All() const = 0;
};

// Follows the training: the last commit alone answers, and its recommendations may be older. A
// request for another version is refused by the routes, which see which one would answer.
class LiveVersion final : public Versions {
 public:
  LiveVersion(Recommender::Latest latest, std::shared_ptr<const Recommender> recommender)
      : latest_(std::move(latest)), recommender_(std::move(recommender)) {}
  Result<Answering> Choose(std::optional<uint64_t>, const http::Request&) const override {
    return Serving();
  }
  Answering Serving() const override { return {latest_(), recommender_, nullptr}; }
  std::vector<Answering> All() const override { return {Serving()}; }

 private:
  const Recommender::Latest latest_;
  const std::shared_ptr<const Recommender> recommender_;
};

// Versions that lie open side by side. A request that has chosen one keeps it open to its end,
// even if another is set meanwhile.
class VersionTable final : public Versions {
 public:
  struct Contents {
    std::vector<std::shared_ptr<const ServedVersion>> open;  // ascending by number
    uint64_t serving = 0;
    std::optional<Canary> canary = {};
  };

  // REQUIRES here and in Set that what is served, and the canary, are open.
  explicit VersionTable(Contents contents) { Set(std::move(contents)); }
  void Set(Contents contents);
  std::shared_ptr<const Contents> contents() const;

  Result<Answering> Choose(std::optional<uint64_t> asked,
                           const http::Request& request) const override;
  Answering Serving() const override;
  std::vector<Answering> All() const override;
  // The newest that is open. Its ledger has the charges of all others, of the served one too.
  std::shared_ptr<const store::Snapshot> Newest() const;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Contents> contents_ TACIT_GUARDED_BY(mutex_);
};

// Reads the field `version` of a request's query, which may have no other field.
Result<std::optional<uint64_t>> VersionOfQuery(std::string_view query);

}  // namespace tacit::serve
