#include "store/recover.h"

#include <fmt/format.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "store/delta_codec.h"
#include "store/remains.h"
#include "store/rocks.h"
#include "store/seal.h"
#include "store/table_tail.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

// All entries that were found, by their heads: of a run that grew there are several.
class Pieces {
 public:
  // Returns true if these bytes are an entry.
  bool Take(std::string_view encoded) {
    auto entry = privacy::LedgerEntry::Decode(encoded);
    return entry && Take(*std::move(entry));
  }
  bool Take(privacy::LedgerEntry entry) {
    if (entry.ComputeHead() != entry.head) return false;
    const Digest head = entry.head;
    entries_.try_emplace(head, std::move(entry));
    return true;
  }

  // The chain that ends with this head, first entry first; empty if there is a gap in it.
  std::vector<privacy::LedgerEntry> ChainTo(const Digest& head) const {
    std::vector<privacy::LedgerEntry> chain;
    for (auto at = entries_.find(head); at != entries_.end();) {
      chain.push_back(at->second);
      if (at->second.index == 0) {
        std::ranges::reverse(chain);
        return chain;
      }
      const auto before = entries_.find(at->second.previous_head);
      if (before == entries_.end() || before->second.index + 1 != at->second.index) break;
      at = before;
    }
    return {};
  }

  // The chain that reaches furthest.
  std::vector<privacy::LedgerEntry> Longest() const {
    std::vector<const privacy::LedgerEntry*> ends;
    for (const auto& [head, entry] : entries_) ends.push_back(&entry);
    std::ranges::sort(ends, [](const auto* a, const auto* b) {
      return std::tuple(a->last_commit, a->index, a->steps) >
             std::tuple(b->last_commit, b->index, b->steps);
    });
    for (const auto* end : ends)
      if (auto chain = ChainTo(end->head); !chain.empty()) return chain;
    return {};
  }

 private:
  std::map<Digest, privacy::LedgerEntry> entries_;
};

// Reads one store or checkpoint after another into the pieces.
class Collector {
 public:
  explicit Collector(RecoveredLedger* report) : report_(report) {}

  void ReadStore(const std::string& path) {
    const auto rocks = Rocks::OpenDamaged(path);
    if (!rocks) {
      report_->unreadable.push_back(rocks.error().message);
      ReadLooseTables(path);
      return;
    }
    ReadEntries(**rocks);
    ReadDeltas(**rocks);
  }

  void ReadCheckpoint(const std::string& folder) {
    auto remains = ReadRemains(folder);
    if (!remains) {
      report_->unreadable.push_back(remains.error().message);
      return;
    }
    uint64_t taken = 0;
    for (privacy::LedgerEntry& entry : remains->entries) taken += pieces_.Take(std::move(entry));
    Found(folder, taken);
  }

  const Pieces& pieces() const { return pieces_; }

 private:
  void Found(const std::string& place, uint64_t entries) {
    if (entries > 0)
      report_->found.push_back(
          fmt::format("{} {} in {}", entries, entries == 1 ? "entry" : "entries", place));
  }

  bool TakeSealed(std::string_view sealed) {
    const auto payload = Unseal(sealed, "an entry");
    return payload && pieces_.Take(*payload);
  }

  // Reads entry by entry, since an iterator ends at the first damaged block.
  void ReadEntries(const Rocks& rocks) {
    auto* family = rocks.family(Family::kLedger);
    uint64_t end = 0;
    if (const auto tip = rocks.Get(Family::kMeta, meta::kTip); tip && *tip)
      if (const auto decoded = DecodeTip(**tip)) end = decoded->ledger_entries;
    const std::unique_ptr<rocksdb::Iterator> it(rocks.db().NewIterator({}, family));
    it->SeekToLast();
    if (it->Valid()) end = std::max(end, SequenceOf(it->key().ToStringView()) + 1);
    uint64_t taken = 0;
    for (uint64_t index = 0; index < end; ++index) {
      std::string sealed;
      const auto got = rocks.db().Get({}, family, SequenceKey(index), &sealed);
      if (got.ok() && TakeSealed(sealed)) {
        ++taken;
      } else {
        report_->unreadable.push_back(
            fmt::format("ledger entry {} of store {}: {}", index, rocks.path(),
                        got.ok() ? "damaged" : Printable(got.ToString())));
      }
    }
    Found("the ledger of " + rocks.path(), taken);
  }

  void ReadDeltas(const Rocks& rocks) {
    const std::unique_ptr<rocksdb::Iterator> it(
        rocks.db().NewIterator({}, rocks.family(Family::kDeltas)));
    uint64_t taken = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      const CommitSeq seq(SequenceOf(it->key().ToStringView()));
      const auto delta = DecodeDelta(it->value().ToStringView(), seq);
      if (!delta) {
        report_->unreadable.push_back(delta.error().message);
        continue;
      }
      for (const auto* entries : {&delta->previous_entries, &delta->entries})
        for (const std::string& entry : *entries) taken += pieces_.Take(entry);
    }
    Found("the deltas of " + rocks.path(), taken);
  }

  // Reads the tables of the ledger that lie in a folder whose list of tables cannot be read.
  void ReadLooseTables(const std::string& path) {
    std::error_code error;
    for (const fs::directory_entry& file : fs::directory_iterator(path, error)) {
      if (file.path().extension() != ".sst") continue;
      if (const Status tail = CheckTableTail(file.path().string()); !tail) {
        report_->unreadable.push_back(tail.error().message);
        continue;
      }
      rocksdb::SstFileReader reader{rocksdb::Options()};
      const auto opened = reader.Open(file.path());
      if (!opened.ok()) {
        report_->unreadable.push_back(
            fmt::format("{}: {}", file.path().string(), Printable(opened.ToString())));
        continue;
      }
      if (reader.GetTableProperties()->column_family_name != "ledger") continue;
      uint64_t taken = 0;
      const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator({}));
      for (it->SeekToFirst(); it->Valid(); it->Next())
        taken += TakeSealed(it->value().ToStringView());
      Found(file.path(), taken);
    }
  }

  RecoveredLedger* const report_;
  Pieces pieces_;
};

}  // namespace

Result<RecoveredLedger> RecoverLedger(const RecoverRequest& request) {
  RecoveredLedger recovered;
  Collector collector(&recovered);
  collector.ReadStore(request.store);
  for (const std::string& folder : request.checkpoints) collector.ReadCheckpoint(folder);
  if (request.end) recovered.entries = collector.pieces().ChainTo(*request.end);
  recovered.complete = !recovered.entries.empty();
  if (!recovered.complete) recovered.entries = collector.pieces().Longest();
  if (recovered.entries.empty())
    return Fail(ErrorCode::kNotFound,
                fmt::format("no ledger could be put together from what {} holds: {}", request.store,
                            recovered.unreadable.empty() ? "there is no entry"
                                                         : recovered.unreadable.front()));
  return recovered;
}

}  // namespace tacit::store
