#include "train/counts/next_item_baselines.h"

#include <algorithm>

#include "base/check.h"
#include "model/ranking/place.h"

namespace tacit::train {
namespace {

// All counts are halved when one comes near to what a float counts in steps of one.
constexpr float kTimesMost = 1 << 23;

}  // namespace

NextItemBaselines::NextItemBaselines(size_t items)
    : times_(items), successors_(items * kSuccessors), scores_(items) {}

double NextItemBaselines::Bytes(size_t items) {
  return static_cast<double>(items) * (2 * sizeof(float) + kSuccessors * sizeof(Successor));
}

NextItemBaselines::Places NextItemBaselines::PlacesOf(uint32_t answer,
                                                      std::span<const uint32_t> history) {
  TACIT_CHECK(!history.empty(), "the successor is that of a history's last item");
  Places places{.popular = model::PlaceOf(answer, history, times_)};
  // Successors first, by how often they followed; then the others, by how popular they are.
  for (size_t i = 0; i < times_.size(); ++i) scores_[i] = times_[i] / (2 * kTimesMost);
  for (const Successor& successor : SuccessorsOf(history.back()))
    if (successor.times > 0) scores_[successor.item] = static_cast<float>(successor.times);
  places.successor = model::PlaceOf(answer, history, scores_);
  return places;
}

void NextItemBaselines::Learn(const StepHistories& step) {
  float most = 0;
  for (size_t u = 0; u < step.units(); ++u) {
    const auto all = step.histories.Of(u);
    for (size_t i = step.before[u]; i < all.size(); ++i) {
      most = std::max(most, ++times_[all[i]]);
      if (i > 0) Follow(all[i - 1], all[i]);
    }
  }
  if (most >= kTimesMost)
    for (float& times : times_) times /= 2;
}

void NextItemBaselines::Follow(uint32_t last, uint32_t next) {
  const auto successors = SuccessorsOf(last);
  auto place = std::ranges::find_if(successors, [next](const Successor& successor) {
    return successor.item == next && successor.times > 0;
  });
  if (place == successors.end()) {
    place = std::ranges::min_element(successors, {}, &Successor::times);
    place->item = next;
  }
  if (place->times < UINT32_MAX) ++place->times;
}

}  // namespace tacit::train
