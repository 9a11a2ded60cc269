#include "serve/recommend/recommender.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/check.h"
#include "serve/model_json.h"

namespace tacit::serve {
namespace {

constexpr std::chrono::milliseconds kLook(50);
constexpr int kRestPerBuild = 9;  // how much longer than a build it rests behind it

// Its own thread has nobody else to tell that there is not enough memory.
Result<std::shared_ptr<const ItemState>> BuildOf(const ItemModel& model,
                                                 const store::Snapshot& snapshot,
                                                 const std::shared_ptr<const ItemState>& last) {
  try {
    return model.Build(snapshot, last);
  } catch (const std::exception& failure) {
    return Fail(ErrorCode::kInternal, failure.what());
  }
}

}  // namespace

Recommender::Recommender(std::vector<RecommendModel> models, Latest latest)
    : models_(std::move(models)), latest_(std::move(latest)), slots_(models_.size()) {
  for (const RecommendModel& model : models_)
    TACIT_CHECK(model.items != nullptr && model.model != nullptr &&
                    model.items->items() == model.model->items(),
                "a model of its catalogue");
}

Recommender::~Recommender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_called_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Recommender::Start() {
  TACIT_CHECK(!thread_.joinable());
  if (!models_.empty()) thread_ = std::thread([this] { Run(); });
}

void Recommender::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Refresh();
    lock.lock();
    stop_called_.wait_for(lock, kLook, [this] { return stopping_; });
  }
}

void Recommender::Refresh() {
  for (size_t model = 0; model < models_.size(); ++model) Update(model);
}

// One thread at a time is here.
void Recommender::Update(size_t index) {
  const RecommendModel& model = models_[index];
  Slot& slot = slots_[index];
  const std::shared_ptr<const store::Snapshot> snapshot = latest_();
  const Clock::time_point begin = Clock::now();
  if (snapshot == nullptr || slot.looked_at == snapshot->version() || begin < slot.not_before)
    return;
  const auto last = slot.served == nullptr ? nullptr : slot.served->state;
  auto state = BuildOf(*model.model, *snapshot, last);
  const bool changed = state && *state != nullptr && *state != last;
  std::shared_ptr<ServedItems> served;
  if (changed) {
    served = std::make_shared<ServedItems>();
    served->state = std::move(*state);
    served->version = snapshot->version().value;
    served->is_private = IsPrivate(TotalOf(*snapshot, model.promise));
    AppendModel(*snapshot, model.promise, &served->model);
  } else if (!state) {
    state.error() = std::move(state.error())
                        .Context(fmt::format("learner '{}': what it has released cannot be served",
                                             model.promise.learner));
    if (!slot.failure || slot.failure->message != state.error().message)
      spdlog::error("version {}: {}", snapshot->version().value, state.error().message);
  }
  const std::lock_guard lock(mutex_);
  slot.looked_at = snapshot->version();
  slot.failure.reset();
  if (!state) slot.failure = std::move(state.error());
  if (changed) slot.served = std::move(served);
  const Clock::time_point end = Clock::now();
  slot.not_before = end + kRestPerBuild * (end - begin);
}

Result<std::shared_ptr<const ServedItems>> Recommender::Get(size_t model) const {
  const std::lock_guard lock(mutex_);
  const Slot& slot = slots_[model];
  if (slot.served != nullptr) return slot.served;
  if (slot.failure) return Fail(Error(*slot.failure));
  return Fail(ErrorCode::kUnavailable,
              fmt::format("learner '{}' has released nothing to recommend from yet",
                          models_[model].promise.learner));
}

}  // namespace tacit::serve
