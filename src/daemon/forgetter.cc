#include "daemon/forgetter.h"

#include <chrono>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::seconds kBetweenTries(30);

// All that a store holds of one user, as of its last commit: histories by the catalogue's names,
// and used allowances.
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

}  // namespace

Forgetter::Forgetter(store::UserBook& users, const wiring::Assembly& assembly,
                     const train::OptOut* opt_out, metrics::Registry& registry)
    : users_(users),
      assembly_(assembly),
      opt_out_(opt_out),
      forgotten_(registry.AddCounter("tacit_users_forgotten_total")),
      erased_(registry.AddCounter("tacit_users_erased_total")) {
  // At once, for an earlier run may have left something; then whenever somebody asks.
  thread_.Start("tacit-forget", [this] {
    while (Erase() ? thread_.Await() : thread_.Rest(kBetweenTries)) {
    }
  });
}

serve::UserCommands Forgetter::Commands() {
  return {.show = [this](std::string_view id) { return Show(id); },
          .forget = [this](std::string_view id) { return Forget(id); }};
}

Result<serve::UserReport> Forgetter::Show(std::string_view id) const {
  TACIT_ASSIGN(serve::UserReport report, ReportUser(assembly_, users_, id));
  report.opted_out = opt_out_ != nullptr && opt_out_->Has(id);
  return report;
}

Result<serve::UserReport> Forgetter::Forget(std::string_view id) {
  const Hash128 user = SipHash(users_.user_key())(id);
  TACIT_RETURN_IF_ERROR(users_.ForgetUsers({&user, 1}));
  forgotten_.Add();
  thread_.Wake();
  return Show(id);
}

// Returns false if it has to be tried again.
bool Forgetter::Erase() {
  const auto erased =
      users_.EraseForgotten(assembly_.config.store.checkpoints.path, &thread_.stopping());
  if (erased && *erased > 0) {
    erased_.Add(static_cast<double>(*erased));
    spdlog::info("no file of the store holds anything of {} who asked to be forgotten",
                 Counted(*erased, "user"));
  } else if (!erased && !thread_.stopping()) {
    spdlog::warn("bytes of forgotten users are still in files, and it is tried again: {}",
                 erased.error().message);
  }
  return erased.has_value();
}

}  // namespace tacit::daemon
