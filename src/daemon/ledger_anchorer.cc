#include "daemon/ledger_anchorer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/log.h"
#include "wiring/restore/anchor_file.h"

namespace tacit::daemon {
namespace {

constexpr std::chrono::seconds kRetry{10};

// The ledger of one snapshot, with its entries.
struct AnchoredSnapshot {
  std::vector<privacy::LedgerEntry> entries;
  Terms terms;
  std::vector<Ancestor> ancestors;
  privacy::AnchoredLedger ledger;  // of the members above
  TermId term = kNoTerm;
};

Status ReadAnchored(const store::Store& store, AnchoredSnapshot* out) {
  out->terms = store.terms();
  const auto snapshot = store.Latest();
  while (out->entries.size() < snapshot->ledger_entries()) {
    TACIT_ASSIGN(const auto page, snapshot->LedgerEntries(out->entries.size(), 4096));
    if (page.empty()) return Fail(ErrorCode::kCorruption, "the ledger ends before its length");
    for (const std::string& bytes : page) {
      TACIT_ASSIGN(privacy::LedgerEntry entry, privacy::LedgerEntry::Decode(bytes));
      out->entries.push_back(std::move(entry));
    }
  }
  const auto ancestors = snapshot->ancestors();
  out->ancestors.assign(ancestors.begin(), ancestors.end());
  out->term = snapshot->term();
  out->ledger = {.entries = out->entries,
                 .lineage = snapshot->lineage(),
                 .last = snapshot->version(),
                 .terms = &out->terms,
                 .ancestors = out->ancestors};
  return {};
}

}  // namespace

Result<std::unique_ptr<LedgerAnchorer>> LedgerAnchorer::Open(const store::Store& store,
                                                             const config::Anchors& options,
                                                             const Clock& clock) {
  if (options.path.empty()) return std::unique_ptr<LedgerAnchorer>();
  std::unique_ptr<LedgerAnchorer> anchorer(new LedgerAnchorer(store, options, clock));
  if (!options.key.empty()) {
    TACIT_ASSIGN(anchorer->signer_, wiring::ReadAnchorSigner("store.anchors.key", options.key));
  }
  TACIT_RETURN_IF_ERROR(anchorer->CheckStore());
  anchorer->thread_.Start("tacit-anchor", [raw = anchorer.get()] { raw->Loop(); });
  return anchorer;
}

std::string LedgerAnchorer::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

// Holds what the file has against the store, as the witness is.
Status LedgerAnchorer::CheckStore() {
  const auto file = wiring::ReadAnchorFile(path_);
  if (!file && file.error().code == ErrorCode::kNotFound) return {};
  if (!file) return Fail(file.error());
  if (file->cut_off)
    spdlog::warn("anchors {} end in the middle of a line: a crash, or somebody, cut it off", path_);
  AnchoredSnapshot now;
  TACIT_RETURN_IF_ERROR(ReadAnchored(store_, &now));
  Status held = privacy::CheckAnchors(file->anchors, now.ledger);
  if (!held)
    return Fail(ErrorCode::kRefused,
                fmt::format("store.anchors.path {}: {}", path_, held.error().message));
  written_ = file->anchors.size();
  if (written_ > 0 && file->anchors.back().lineage == now.ledger.lineage)
    last_commit_ = file->anchors.back().commit;
  return {};
}

Status LedgerAnchorer::WriteHead() {
  if (store_.Latest()->version().value <= last_commit_) return {};
  AnchoredSnapshot now;
  TACIT_RETURN_IF_ERROR(ReadAnchored(store_, &now));
  privacy::Anchor anchor = privacy::AnchorOf(now.ledger, now.term);
  anchor.time_ms = clock_.UnixMillis();
  TACIT_ASSIGN(anchor, wiring::AppendAnchor(path_, std::move(anchor), signer_ ? &*signer_ : nullptr,
                                            written_));
  written_ = anchor.number + 1;
  last_commit_ = anchor.commit;
  return {};
}

// Returns false if it failed.
bool LedgerAnchorer::TryWriteHead() {
  const Status written = WriteHead();
  const std::string why = written ? "" : written.error().message;
  bool news = false;
  {
    const MutexLock lock(mutex_);
    news = why != trouble_;
    trouble_ = why;
  }
  if (!news) return written.has_value();
  if (written)
    spdlog::info("the ledger's head is anchored again");
  else
    spdlog::error("the ledger's head could not be anchored: {}", why);
  return written.has_value();
}

void LedgerAnchorer::Loop() {
  while (thread_.Rest(TryWriteHead() ? every_ : std::min(every_, kRetry))) {
  }
}

void LedgerAnchorer::Finish() {
  thread_.Stop();
  TryWriteHead();
}

}  // namespace tacit::daemon
