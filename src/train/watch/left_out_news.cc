#include "train/watch/left_out_news.h"

#include <fmt/format.h>
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
      users_share_(registry.AddGauge("tacit_users_left_out_share", {{"learner", learner_}})),
      records_share_(registry.AddGauge("tacit_records_left_out_share", {{"learner", learner_}})) {}

void LeftOutNews::See(const UsersCame& came) {
  window_.Add(came);
  if (window_.users >= kUsersOfWindow) EndWindow();
}

void LeftOutNews::EndWindow() {
  const UsersCame came = std::exchange(window_, {});
  const auto share = [](uint64_t left_out, uint64_t all) {
    return static_cast<double>(left_out) / static_cast<double>(std::max<uint64_t>(1, all));
  };
  const double users = share(came.users_left_out, came.users);
  const double records = share(came.records_left_out, came.records);
  users_share_.Set(users);
  records_share_.Set(records);
  const auto reached = static_cast<size_t>(std::ranges::count_if(
      kSharesTold, [&](double told) { return std::max(users, records) >= told; }));
  const std::string left_out = fmt::format(
      "learner '{}': {:.0f} % of the last {} and {:.0f} % of their {} could not be learnt from",
      learner_, 100 * users, Counted(came.users, "user"), 100 * records,
      Counted(came.records, "record"));
  if (reached > told_)
    spdlog::warn(
        "{}: allowances (participation.max_participations) are used up, and nothing gives them "
        "back",
        left_out);
  else if (reached == 0 && told_ > 0)
    spdlog::info("{}", left_out);
  told_ = reached == 0 ? 0 : std::max(told_, reached);
}

}  // namespace tacit::train
