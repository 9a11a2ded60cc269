#pragma once

namespace tacit::sim {

// Faults in copies of the product's sources, which CMake makes from today's. Each does nothing
// until it is switched on.
enum class Planted {
  kNothing,
  kLogNotSynced,
  kWitnessBeforeSync,
  kWitnessNotSynced,
  kWitnessNotNamed,
  kCheckpointNotNamed,
  kDeltasDeletedFirst,
  kFoldersNotNamed,
  kTablesNotNamed,
  kListNotNamed,
  kFailuresIgnored,
  kRestoreNotNamed,
  // A trainer's.
  kStartsOneLate,
  kNewPartitionFromItsEnd,
  kAbortedRead,
  kLettersOfOnePartition,
  kStepUncharged,
  kAnchorOfCommitBefore,
  kEndsWithoutBrokers,
  kWatcherGivesUp,
};
inline Planted planted = Planted::kNothing;
inline bool Has(Planted fault) { return planted == fault; }

}  // namespace tacit::sim
