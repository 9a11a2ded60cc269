#include "daemon/front.h"

#include "base/clock.h"
#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

constexpr int64_t kDay = 86'400, kWarnBefore = 30 * kDay;
constexpr uint32_t kLooksBetween = 10;  // of those that Look is called for

void TellCallers(const http::Callers& callers) {
  spdlog::info("{} of {} are known by their tokens", Counted(callers.table()->size(), "caller"),
               callers.path());
}

http::CallerRates RatesOf(const config::Serve& config) {
  return {config.rates.query, config.rates.user, config.rates.of_operator};
}

http::TlsFiles TlsFilesOf(const config::TlsFiles& files) {
  return {.certificate = files.certificate, .key = files.key, .client_ca = files.client_ca};
}

void TellKept(const Error& error, std::string_view what) {
  spdlog::error("{}; the {} before", error.message, what);
}
constexpr std::string_view kCallersStay = "callers stay those that were read",
                           kTlsStays = "certificate and key stay those that were read";

int64_t UnixSeconds() { return SystemClock().UnixMillis() / 1000; }

}  // namespace

Result<std::unique_ptr<Front>> Front::Open(const config::Serve& config,
                                           metrics::Registry& registry) {
  std::unique_ptr<Front> front(new Front());
  front->drain_ = std::chrono::milliseconds(config.drain_ms);
  if (!config.callers.empty()) {
    TACIT_ASSIGN(front->callers_, http::Callers::Open(config.callers, RatesOf(config)));
    TellCallers(*front->callers_);
  }
  if (!config.tls.certificate.empty()) {
    TACIT_ASSIGN(front->tls_, http::Tls::Open(TlsFilesOf(config.tls)));
    front->tls_files_ = config.tls;
    front->expires_ = registry.AddGauge("tacit_tls_certificate_expires_seconds");
    front->TellCertificate();
  }
  return front;
}

void Front::FillIn(http::ServerOptions* options) const {
  options->callers = callers_;
  options->tls = tls_;
}

serve::Readiness Front::Readiness(serve::Readiness other) const {
  if (draining_) return {.ready = false, .reason = "stopping: send requests elsewhere"};
  return other;
}

std::chrono::milliseconds Front::BeginDraining() {
  if (server_ == nullptr || drain_.count() == 0) return {};
  draining_ = true;
  return drain_;
}

void Front::TellCertificate() {
  const int64_t now = UnixSeconds(), left = tls_->expires_s() - now;
  expires_.Set(static_cast<double>(tls_->expires_s()));
  if (left > kWarnBefore || (warned_s_ && now - *warned_s_ < kDay)) return;
  warned_s_ = now;
  if (left <= 0)
    spdlog::error("serve.tls.certificate has expired: clients refuse it");
  else
    spdlog::warn("serve.tls.certificate expires in {}",
                 Counted(static_cast<uint64_t>(left / kDay), "day"));
}

Status Front::Change(const config::Serve& config) {
  std::unique_ptr<http::Callers> callers;
  if (callers_ != nullptr && config.callers != callers_->path()) {
    TACIT_ASSIGN(callers, http::Callers::Open(config.callers, RatesOf(config), callers_.get()));
  }
  std::shared_ptr<http::Tls> tls;
  if (tls_ != nullptr && config.tls != tls_files_) {
    TACIT_ASSIGN(tls, http::Tls::Open(TlsFilesOf(config.tls)));
  }
  // From here on nothing fails.
  if (callers != nullptr) callers_->TakeOver(*callers);
  if (callers_ != nullptr) callers_->SetRates(RatesOf(config));
  if (tls != nullptr) tls_->TakeOver(*tls);
  tls_files_ = config.tls;
  drain_ = std::chrono::milliseconds(config.drain_ms);
  if (server_ != nullptr) server_->SetAccessLog(config.access_log);
  return {};
}

void Front::Reload() {
  if (callers_ != nullptr) {
    const Status read = callers_->Reload();
    if (read)
      TellCallers(*callers_);
    else
      TellKept(read.error(), kCallersStay);
  }
  if (tls_ == nullptr) return;
  if (const Status read = tls_->Reload(); !read) return TellKept(read.error(), kTlsStays);
  spdlog::info("certificate and key are read again");
  TellCertificate();
}

void Front::Look() {
  if (++looks_ % kLooksBetween != 0) return;
  if (callers_ != nullptr) {
    const auto changed = callers_->ReloadIfChanged();
    if (!changed)
      TellKept(changed.error(), kCallersStay);
    else if (*changed)
      TellCallers(*callers_);
  }
  if (tls_ == nullptr) return;
  const auto changed = tls_->ReloadIfChanged();
  if (!changed) TellKept(changed.error(), kTlsStays);
  if (changed && *changed) spdlog::info("certificate and key are read again");
  TellCertificate();
}

}  // namespace tacit::daemon
