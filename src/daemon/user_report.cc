#include "daemon/user_report.h"

#include <utility>

namespace tacit::daemon {

Result<serve::UserReport> ReportUser(const wiring::Assembly& assembly, const store::UserBook& users,
                                     std::string_view id) {
  const Hash128 user = SipHash(users.user_key())(id);
  serve::UserReport report;
  const auto snapshot = users.Latest();
  for (const serve::RecommendModel& model : wiring::MakeRecommendModels(assembly)) {
    TACIT_ASSIGN(const auto items, snapshot->History(model.index, user));
    serve::UserReport::History history{.learner = model.promise.learner, .items = {}};
    for (const store::HistoryItem& item : items)
      if (item.item < model.items->items())
        history.items.push_back({std::string(model.items->Name(item.item)), item.timestamp_ms});
    if (!history.items.empty()) report.histories.push_back(std::move(history));
  }
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const config::Learner& learner = assembly.config.learners[i];
    if (!learner.privacy.of_users()) continue;
    UserUses uses{.user = user};
    TACIT_ASSIGN(const uint64_t step, users.ReadAllowances(assembly.learners[i].index, {&uses, 1}));
    (void)step;
    report.allowances.push_back(
        {assembly.learners[i].id, uses.used, learner.participation.max_participations});
  }
  if (const auto forgotten = users.Forgotten(user)) {
    report.forgotten_before_ms = forgotten->before_ms;
    report.erased = forgotten->erased;
  }
  return report;
}

}  // namespace tacit::daemon
