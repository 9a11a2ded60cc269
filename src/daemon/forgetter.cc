#include "daemon/forgetter.h"

#include <chrono>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "daemon/user_report.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::seconds kBetweenTries(30);

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
