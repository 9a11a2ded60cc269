#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "event/item_catalogue.h"
#include "privacy/ledger.h"
#include "serve/recommend/item_model.h"
#include "store/snapshot.h"

namespace tacit::serve {

// A learner that can be asked what comes next, as the configuration has it. A value.
struct RecommendModel {
  LearnerIndex index;
  privacy::Promise promise;
  std::shared_ptr<const event::ItemCatalogue> items;
  std::shared_ptr<const ItemModel> model;  // of as many items
  bool serve_users = false;                // by id, out of their raw histories
};

// What a learner's recommendations are made from at present, and which commit that was made from.
struct ServedItems {
  std::shared_ptr<const ItemState> state;
  uint64_t version = 0;
  bool is_private = false;
  std::string model;  // "model":{...} of that commit
};

// Keeps each learner's ItemState up with what is committed: a thread of its own looks at the last
// snapshot every 50 ms and builds anew what has changed, while requests go on with the older one.
// It builds a tenth of its time at most. Thread-safe.
class Recommender {
 public:
  using Latest = std::function<std::shared_ptr<const store::Snapshot>()>;

  // `latest` as Services has it.
  Recommender(std::vector<RecommendModel> models, Latest latest);
  ~Recommender();
  Recommender(const Recommender&) = delete;
  Recommender& operator=(const Recommender&) = delete;

  const std::vector<RecommendModel>& models() const { return models_; }
  // Builds now what has changed, on this thread: for whoever has one snapshot, before Start.
  void Refresh();
  // Starts the thread. REQUIRES that it was not started.
  void Start();

  // Never null. kUnavailable before the first; what was wrong with it where the first could not be
  // built.
  Result<std::shared_ptr<const ServedItems>> Get(size_t model) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    std::optional<CommitSeq> looked_at;
    Clock::time_point not_before{};  // of the next build
    std::shared_ptr<const ServedItems> served;
    std::optional<Error> failure;  // of the last build
  };

  void Run();
  void Update(size_t model);

  const std::vector<RecommendModel> models_;
  const Latest latest_;
  mutable std::mutex mutex_;  // of what follows; not held while anything is built
  std::condition_variable stop_called_;
  bool stopping_ = false;
  std::vector<Slot> slots_;
  std::thread thread_;
};

}  // namespace tacit::serve
