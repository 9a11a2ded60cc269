#include "serve/items/recommender.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/threads/named_thread.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

constexpr int kRestPerBuild = 9;  // the pause after a build, in build times

// Returns out-of-memory as an error, since the recommender's thread has no caller to catch it.
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

Recommender::Recommender(std::vector<RecommendModel> models, Latest latest, CommitSignal* commits)
    : models_(std::move(models)),
      latest_(std::move(latest)),
      commits_(commits),
      indexes_(models_.size()),
      slots_(models_.size()) {
  for (const RecommendModel& model : models_)
    TACIT_CHECK(model.items != nullptr && model.model != nullptr &&
                    model.items->items() == model.model->items(),
                "a model of its catalogue");
}

Recommender::~Recommender() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  if (commits_ != nullptr) commits_->Tell();
  thread_.join();
}

void Recommender::Start() {
  TACIT_CHECK(!thread_.joinable());
  if (!models_.empty()) thread_ = NamedThread("tacit-recommend", [this] { Run(); });
}

void Recommender::Run() {
  if (commits_ == nullptr) return Refresh();
  while (!stopping_) {
    // A commit, or the stop, that is told of after this line ends the wait at once.
    const uint64_t told = commits_->told();
    if (stopping_) return;
    const auto again = Look();
    commits_->Wait(told, again);
  }
}

void Recommender::Refresh() { Look(); }

std::optional<Recommender::Clock::time_point> Recommender::Look() {
  std::optional<Clock::time_point> again;
  for (size_t model = 0; model < models_.size(); ++model) {
    const auto due = Update(model);
    if (due && (!again || *due < *again)) again = due;
  }
  return again;
}

// REQUIRES that only one thread at a time calls this.
std::optional<Recommender::Clock::time_point> Recommender::Update(size_t index) {
  const RecommendModel& model = models_[index];
  Slot& slot = slots_[index];
  const std::shared_ptr<const store::Snapshot> snapshot = latest_();
  const Clock::time_point begin = Clock::now();
  if (snapshot == nullptr || slot.looked_at == snapshot->version()) return std::nullopt;
  if (begin < slot.not_before) return slot.not_before;
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
    AppendParameters(*snapshot, model.promise, &served->parameters);
  } else if (!state) {
    state.error() = std::move(state.error())
                        .Context(fmt::format("learner '{}': its released state cannot be served",
                                             model.promise.learner));
    if (!slot.failure || slot.failure->message != state.error().message)
      spdlog::error("version {}: {}", snapshot->version().value, state.error().message);
  }
  const MutexLock lock(mutex_);
  slot.looked_at = snapshot->version();
  slot.failure.reset();
  if (!state) slot.failure = std::move(state.error());
  if (changed) slot.served = std::move(served);
  const Clock::time_point end = Clock::now();
  slot.not_before = end + kRestPerBuild * (end - begin);
  return std::nullopt;
}

const ItemIndex& Recommender::IndexOf(size_t model) const {
  const MutexLock lock(index_mutex_);
  auto& index = indexes_[model];
  if (index == nullptr) index = std::make_unique<const ItemIndex>(*models_[model].items);
  return *index;
}

Status Recommender::Loaded(size_t model) const {
  if (latest_() == nullptr) return {};
  const MutexLock lock(mutex_);
  if (slots_[model].looked_at) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("learner '{}' is being loaded", models_[model].promise.learner));
}

Status Recommender::Loaded() const {
  for (size_t model = 0; model < models_.size(); ++model) TACIT_RETURN_IF_ERROR(Loaded(model));
  return {};
}

Result<std::shared_ptr<const ServedItems>> Recommender::Get(size_t model) const {
  {
    const MutexLock lock(mutex_);
    const Slot& slot = slots_[model];
    if (slot.served != nullptr) return slot.served;
    if (slot.failure) return Fail(Error(*slot.failure));
  }
  TACIT_RETURN_IF_ERROR(Loaded(model));
  return Fail(ErrorCode::kUnavailable,
              fmt::format("learner '{}' has released nothing to recommend from yet",
                          models_[model].promise.learner));
}

}  // namespace tacit::serve
