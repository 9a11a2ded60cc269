#include "http/callers.h"

#include <openssl/crypto.h>

#include <utility>

#include "http/token.h"

namespace tacit::http {

Result<std::unique_ptr<Callers>> Callers::Open(std::string path, const CallerRates& rates,
                                               const Callers* before) {
  std::unique_ptr<Callers> callers(new Callers(std::move(path), rates));
  if (before != nullptr) {
    const MutexLock lock(callers->mutex_);
    callers->table_ = before->table();
  }
  TACIT_RETURN_IF_ERROR(callers->Reload());
  return callers;
}

std::unique_ptr<Callers> Callers::Fixed(CallerTable table) {
  std::unique_ptr<Callers> callers(new Callers("", {}));
  callers->Put(std::make_shared<const CallerTable>(std::move(table)));
  return callers;
}

Status Callers::Reload() {
  const MutexLock reading(reading_);
  if (path_.empty()) return {};
  stamp_ = {};
  TACIT_ASSIGN(const std::string text, ReadKeptFile("serve.callers", path_, &stamp_));
  const auto before = table();
  auto parsed = CallerTable::Parse(text, path_, rates_, before.get());
  if (!parsed) return Fail(std::move(parsed.error()).Context("serve.callers"));
  Put(std::make_shared<const CallerTable>(std::move(*parsed)));
  return {};
}

void Callers::Put(std::shared_ptr<const CallerTable> table) {
  {
    const MutexLock lock(mutex_);
    table_ = std::move(table);
  }
  generation_.fetch_add(1, std::memory_order_release);
}

void Callers::TakeOver(const Callers& other) {
  // No other thread has `other`, so the order of the locks is free.
  const MutexLock reading(reading_), reading_other(other.reading_);
  path_ = other.path_;
  rates_ = other.rates_;
  stamp_ = other.stamp_;
  Put(other.table());
}

std::string Callers::path() const {
  const MutexLock reading(reading_);
  return path_;
}

void Callers::SetRates(const CallerRates& rates) {
  const MutexLock reading(reading_);
  rates_ = rates;
  Put(std::make_shared<const CallerTable>(table()->WithRates(rates)));
}

Result<bool> Callers::ReloadIfChanged() {
  {
    const MutexLock reading(reading_);
    if (path_.empty() || StampOfFile(path_) == stamp_) return false;
  }
  TACIT_RETURN_IF_ERROR(Reload());
  return true;
}

std::shared_ptr<const CallerTable> Callers::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

KnownCaller::~KnownCaller() { Forget(); }

void KnownCaller::Forget() {
  OPENSSL_cleanse(token_.data(), token_.size());
  token_.clear();
  caller_ = nullptr;
}

const Caller* KnownCaller::Find(const Callers& callers, std::string_view token) {
  const uint64_t generation = callers.generation();
  if (caller_ != nullptr && generation == generation_ && token.size() == token_.size() &&
      CRYPTO_memcmp(token.data(), token_.data(), token.size()) == 0)
    return caller_;
  Forget();
  if (generation != generation_) {
    // The callers are of this generation or a later one; of a later one they are taken once more.
    generation_ = generation;
    table_ = callers.table();
  }
  const Caller* const found = table_->Find(DigestOfToken(token));
  if (found == nullptr) return nullptr;
  token_ = token;
  caller_ = found;
  return found;
}

}  // namespace tacit::http
