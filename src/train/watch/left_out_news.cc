#include "train/watch/left_out_news.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "metrics/families.h"

namespace tacit::train {
namespace {

// Fewer users say nothing of those who come.
constexpr uint64_t kUsersOfWindow = 100;
constexpr std::array<double, 4> kSharesTold = {0.1, 0.25, 0.5, 0.9};

}  // namespace

LeftOutNews::LeftOutNews(std::string learner, metrics::Registry& registry)
    : learner_(std::move(learner)),
      share_(registry.AddGauge("tacit_users_left_out_share", {{"learner", learner_}})) {}

void LeftOutNews::See(uint64_t let_in, uint64_t left_out) {
  let_in_ += let_in;
  left_out_ += left_out;
  if (let_in_ + left_out_ >= kUsersOfWindow) EndWindow();
}

void LeftOutNews::EndWindow() {
  const uint64_t users = let_in_ + left_out_, left_out = std::exchange(left_out_, 0);
  let_in_ = 0;
  const double share = static_cast<double>(left_out) / static_cast<double>(users);
  share_.Set(share);
  const auto reached = static_cast<size_t>(
      std::ranges::count_if(kSharesTold, [share](double told) { return share >= told; }));
  if (reached > told_)
    spdlog::warn(
        "learner '{}': {:.0f} % of the last {} could not be learnt from: their allowance "
        "(participation.max_participations) is used up, and nothing gives it back",
        learner_, 100 * share, Counted(users, "user"));
  else if (reached == 0 && told_ > 0)
    spdlog::info("learner '{}': {:.0f} % of the last {} could not be learnt from", learner_,
                 100 * share, Counted(users, "user"));
  told_ = reached == 0 ? 0 : std::max(told_, reached);
}

}  // namespace tacit::train
