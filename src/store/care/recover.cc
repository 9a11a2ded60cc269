#include "store/care/recover.h"

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
#include "store/care/remains.h"
#include "store/disk/folder.h"
#include "store/disk/format.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"
#include "store/disk/table_tail.h"
#include "store/view/delta_codec.h"

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
  bool Take(privacy::LedgerEntry&& entry) {
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
    std::vector<const privacy::LedgerEntry*> entries;
    for (const auto& [head, entry] : entries_) entries.push_back(&entry);
    std::ranges::sort(entries, {}, &privacy::LedgerEntry::index);
    std::map<Digest, uint64_t> whole;  // heads of chains without a gap, and their last index
    const privacy::LedgerEntry* furthest = nullptr;
    const auto reach = [](const privacy::LedgerEntry& entry) {
      return std::tuple(entry.last_commit, entry.index, entry.steps);
    };
    for (const auto* entry : entries) {
      const auto before = whole.find(entry->previous_head);
      if (entry->index > 0 && (before == whole.end() || before->second + 1 != entry->index))
        continue;
      whole.emplace(entry->head, entry->index);
      if (furthest == nullptr || reach(*entry) > reach(*furthest)) furthest = entry;
    }
    return furthest == nullptr ? std::vector<privacy::LedgerEntry>() : ChainTo(furthest->head);
  }

 private:
  std::map<Digest, privacy::LedgerEntry> entries_;
};

// Collects entries that cannot be read; neighbours with one reason are told together.
class UnreadEntries {
 public:
  // Adds [begin, end).
  void Add(uint64_t begin, uint64_t end, std::string why) {
    if (!runs_.empty() && runs_.back().end == begin && runs_.back().why == why)
      runs_.back().end = end;
    else
      runs_.push_back({begin, end, std::move(why)});
  }
  void Tell(const std::string& store, std::vector<std::string>* lines) const {
    for (const Run& run : runs_)
      lines->push_back(fmt::format("ledger {} of store {}: {}",
                                   run.end - run.begin == 1
                                       ? fmt::format("entry {}", run.begin)
                                       : fmt::format("entries {} to {}", run.begin, run.end - 1),
                                   store, run.why));
  }

 private:
  struct Run {
    uint64_t begin, end;
    std::string why;
  };
  std::vector<Run> runs_;
};

// The number of entries that the last commit counted; 0 if that cannot be read.
uint64_t EntriesByTip(const Rocks& rocks) {
  const auto bytes = rocks.Get(Family::kMeta, meta::kTip);
  if (!bytes || !*bytes) return 0;
  const auto tip = DecodeTip(**bytes);
  return tip ? tip->ledger_entries : 0;
}

// The most entries that the ledger's tables have room for.
uint64_t EntriesMost(const Rocks& rocks) {
  constexpr uint64_t kEntryBytesLeast = 2 * sizeof(Digest);  // its head, and the one before
  rocksdb::ColumnFamilyMetaData ledger;
  rocks.db().GetColumnFamilyMetaData(rocks.family(Family::kLedger), &ledger);
  uint64_t entries = 0;
  for (const auto& level : ledger.levels)
    for (const auto& file : level.files) {
      std::error_code error;
      const uint64_t bytes = fs::file_size(file.db_path + file.name, error);
      if (!error) entries += bytes / kEntryBytesLeast;
    }
  return entries;
}

// Moves to the first entry from this one on.
void SeekEntry(uint64_t index, rocksdb::Iterator* it) {
  const std::string key = SequenceKey(index);
  for (it->Seek(key); it->Valid() && it->key().size() != key.size();) it->Next();
}

// Reads one store or checkpoint after another into the pieces.
class Collector {
 public:
  explicit Collector(RecoveredLedger* report) : report_(report) {}

  // kRefused: its entries are of a format that this program does not read.
  Status ReadStore(const std::string& path) {
    const auto rocks = Rocks::OpenDamaged(path);
    if (!rocks) {
      report_->unreadable.push_back(rocks.error().message);
      ReadLooseTables(path);
      return {};
    }
    const auto format = CheckStoreFormat(**rocks);
    if (!format && format.error().code == ErrorCode::kRefused) return Fail(format.error());
    ReadEntries(**rocks);
    ReadDeltas(**rocks);
    return {};
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

  // Reads entry by entry, since an iterator ends at the first damaged block. A forged key or tip
  // may leave out 2^63 numbers: it goes from an entry to the next one that is there, and through no
  // more damage than the tables have room for.
  void ReadEntries(const Rocks& rocks) {
    auto* family = rocks.family(Family::kLedger);
    const std::unique_ptr<rocksdb::Iterator> it(rocks.db().NewIterator({}, family));
    constexpr uint64_t kNoEntry = ~uint64_t{0};  // nothing comes after it
    const uint64_t end = EntriesByTip(rocks), most = EntriesMost(rocks);
    UnreadEntries unread;
    uint64_t index = 0, taken = 0, damaged = 0;
    while (damaged <= most && index < kNoEntry) {
      std::string sealed;
      const auto got = rocks.db().Get({}, family, SequenceKey(index), &sealed);
      if (got.ok() && TakeSealed(sealed)) {
        ++taken, ++index;
        continue;
      }
      uint64_t next = index + 1;
      if (got.IsNotFound()) {
        SeekEntry(index, it.get());
        if (!it->Valid() && (it->status().ok() || index >= end)) break;
        if (it->Valid()) next = std::max(next, SequenceOf(it->key().ToStringView()));
      }
      damaged += got.IsNotFound() ? !it->Valid() : !got.ok();
      unread.Add(index, next,
                 got.ok()           ? "damaged"
                 : got.IsNotFound() ? "not found"
                                    : Printable(got.ToString()));
      index = next;
    }
    if (damaged > most)
      unread.Add(index, std::max(index + 1, end),
                 "not looked for: the tables have no room for as many as are damaged");
    else if (index < end)
      unread.Add(index, end, "not found");
    unread.Tell(rocks.path(), &report_->unreadable);
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
  TACIT_RETURN_IF_ERROR(CheckClosed(request.store));
  RecoveredLedger recovered;
  Collector collector(&recovered);
  TACIT_RETURN_IF_ERROR(collector.ReadStore(request.store));
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
