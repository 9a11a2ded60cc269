#pragma once

#include <map>
#include <memory>
#include <string>

#include "script.h"
#include "store/replica/replica_store.h"

// Fixed versions of a replica, each with rows, dense parameters and an entry or two of the ledger:
// what version `seq` holds follows from `seq` alone.
namespace tacit::store {

inline ReplicaOptions ReplicaTestOptions(const std::string& path) {
  ReplicaOptions options;
  options.path = path;
  options.memory_bytes = uint64_t{32} << 20;
  options.fold_after_versions = 3;
  options.fold_file_bytes = 0;
  options.learners = TestLearners();
  return options;
}

// Versions have the numbers 2, 4, 6, ...
inline float ReplicaValue(uint64_t seq, uint64_t row, uint32_t i) {
  return static_cast<float>(seq * 1000 + row) + static_cast<float>(i) / 8;
}
inline std::string ReplicaPosition(uint64_t seq) { return "position of " + std::to_string(seq); }

// The chain as of a version, made by the ledger itself at fixed times.
inline privacy::Ledger ReplicaLedger(uint64_t through) {
  privacy::Ledger ledger;
  for (const LearnerLayout& learner : TestLearners())
    TACIT_CHECK(ledger.Declare(learner.promise).has_value());
  for (uint64_t seq = 2; seq <= through; seq += 2) {
    const std::vector<privacy::CommitCharge> charges = {TestCharge("ctr", seq)};
    ledger.Append(CommitSeq(seq), static_cast<int64_t>(seq), charges, Digest{}, "test");
  }
  return ledger;
}

inline ReplicaVersion ReplicaVersionOf(uint64_t seq) {
  const privacy::Ledger ledger = ReplicaLedger(seq);
  ReplicaVersion version{.tip = {.seq = CommitSeq(seq),
                                 .head = ledger.head(),
                                 .ledger_entries = ledger.entries().size(),
                                 .learners = ledger.Learners(),
                                 .total = ledger.Total()},
                         .learners = {},
                         .entries = {},
                         .position = ReplicaPosition(seq)};
  for (size_t i = 0; i < ledger.entries().size(); ++i)
    version.entries[i] = ledger.entries()[i].Encode();
  const RowLayout layout = ReplicaLayout(TestLearners()[0].rows);
  auto rows = std::make_shared<RowDelta>();
  for (const uint64_t row : Script::RowsOf(seq)) {
    rows->rows.push_back(row);
    for (uint32_t i = 0; i < layout.RowFloats(layout.space.TableOf(row)); ++i)
      rows->floats.push_back(ReplicaValue(seq, row, i));
    rows->end.push_back(rows->floats.size());
  }
  version.learners.push_back(
      {.key = 0,
       .rows = std::move(rows),
       .dense = std::make_shared<std::vector<float>>(7, static_cast<float>(seq)),
       .released = std::make_shared<std::string>("released by " + std::to_string(seq))});
  return version;
}

inline ReplicaOrigin ReplicaTestOrigin() {
  ReplicaOrigin origin{.lineage = std::string(32, 'a'), .feed = "feed", .learners = {}};
  for (const LearnerLayout& learner : TestLearners())
    origin.learners.push_back({static_cast<uint16_t>(origin.learners.size()), learner.name,
                               learner.promise.model_fingerprint, learner.rows});
  return origin;
}

// Goes on from what is there. The rows of this many versions go ahead of the first one that is
// applied, where there is none yet.
inline Status ApplyTo(const std::string& path, uint64_t versions, uint64_t ahead = 0) {
  TACIT_ASSIGN(const auto store, ReplicaStore::Open(ReplicaTestOptions(path)));
  if (store->feed().empty()) {
    TACIT_RETURN_IF_ERROR(store->Begin(ReplicaTestOrigin()));
  }
  const auto latest = store->Latest();
  uint64_t seq = (latest ? latest->version().value : 0) + 2;
  for (; !latest && seq <= 2 * ahead; seq += 2)
    TACIT_RETURN_IF_ERROR(store->Fill(ReplicaVersionOf(seq).learners));
  for (; seq <= 2 * versions; seq += 2) TACIT_RETURN_IF_ERROR(store->Apply(ReplicaVersionOf(seq)));
  return {};
}

}  // namespace tacit::store
