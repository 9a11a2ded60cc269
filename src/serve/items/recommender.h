#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/threads/mutex.h"
#include "event/item_catalogue.h"
#include "privacy/ledger.h"
#include "serve/items/commit_signal.h"
#include "serve/items/item_index.h"
#include "serve/items/item_model.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Hashes a user id to its key in the store's histories.
using UserHash = std::function<Hash128(std::string_view user)>;

// A learner that can recommend the next item, as configured. A value type.
struct RecommendModel {
  LearnerIndex index;
  privacy::Promise promise;
  std::shared_ptr<const event::ItemCatalogue> items;
  std::shared_ptr<const ItemModel> model;  // of the same number of items
  bool serve_users = false;                // by id, from their raw histories
};

// The current state of a learner's recommendations, and the commit it was built from.
struct ServedItems {
  std::shared_ptr<const ItemState> state;
  uint64_t version = 0;
  bool is_private = false;
  std::string model;       // "model":{...} of that commit
  std::string parameters;  // the same as AppendParameters has it
};

// Keeps each learner's ItemState up to date with commits: its own thread looks at the last snapshot
// when it is told of a commit and rebuilds changed states, while requests use the older ones. It
// spends at most a tenth of its time building. Thread-safe.
class Recommender {
 public:
  using Latest = std::function<std::shared_ptr<const store::Snapshot>()>;

  // `latest` and `commits` are as in Services.
  Recommender(std::vector<RecommendModel> models, Latest latest, CommitSignal* commits = nullptr);
  ~Recommender();
  Recommender(const Recommender&) = delete;
  Recommender& operator=(const Recommender&) = delete;

  const std::vector<RecommendModel>& models() const { return models_; }
  // Rebuilds changed states now, on this thread; for callers with a single snapshot, before Start.
  void Refresh();
  // Starts the thread; without a signal, it looks once. REQUIRES that it has not been started.
  void Start();

  // The public descriptions of a model's items; made when first asked for.
  const ItemIndex& IndexOf(size_t model) const;

  // Ok once the states of a version that was there at the start are built, or cannot be.
  // kUnavailable names a learner whose first state is being built.
  Status Loaded() const;
  // The current state; never null. kUnavailable before the first state; the build's error if the
  // first state could not be built.
  Result<std::shared_ptr<const ServedItems>> Get(size_t model) const;

 private:
  using Clock = CommitSignal::Clock;
  struct Slot {
    std::optional<CommitSeq> looked_at;
    Clock::time_point not_before{};  // of the next build
    std::shared_ptr<const ServedItems> served;
    std::optional<Error> failure;  // of the last build
  };

  void Run();
  // Rebuilds changed states. Returns the earliest time at which a state that had to wait for its
  // rest may be built, if any had to.
  std::optional<Clock::time_point> Look();
  // The same for one model.
  std::optional<Clock::time_point> Update(size_t model);
  Status Loaded(size_t model) const;

  const std::vector<RecommendModel> models_;
  const Latest latest_;
  CommitSignal* const commits_;
  std::atomic<bool> stopping_ = false;
  // Held while slots_ changes, which the thread that builds does alone, and while others read it.
  mutable Mutex mutex_;
  mutable Mutex index_mutex_;
  // One per model, once asked for.
  mutable std::vector<std::unique_ptr<const ItemIndex>> indexes_ TACIT_GUARDED_BY(index_mutex_);
  std::vector<Slot> slots_;
  std::thread thread_;
};

}  // namespace tacit::serve
