#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/brokers/cluster.h"
#include "sim/trainer/recorded_noise.h"
#include "system/kafka/oracle.h"

namespace tacit::sim {

// The store's account of itself, and how often it has learnt each event, as somebody reads it
// between two lives of its trainer. Plain: it lies in memory that processes share.
struct Told {
  static constexpr size_t kEventsMost = 16'384;
  struct Learner {
    uint64_t steps = 0;
    double epsilon = 0;
  };

  bool there = false;           // it can be read, and has a commit
  std::array<char, 400> why{};  // it cannot be read
  uint64_t commit = 0;
  std::array<char, 72> head{}, lineage{};
  Learner exact, paid;                                     // as the ledger has them
  uint32_t numbers = 0;                                    // parameters of the learner that pays
  std::array<double, Draws::kNumbersMost> first{}, now{};  // before its first step, and now
  std::array<int8_t, kEventsMost> applied{};               // by the learner `exact`
};

// The end of a process that was a trainer.
struct End {
  int exit_code = 0, signal = 0;
  std::string words;
  bool fault_met = false;     // a call of its disk has failed
  bool asked_to_end = false;  // by SIGTERM
};

// Exit codes of processes that the test itself ends.
inline constexpr int kKilled = 79, kBehind = 80, kDeaf = 81;

// Knows what a trainer has to do, by a bookkeeping of its own, and nothing of the product's: the
// brokers' log, sums as they were once noise was in them, and all that was told before. Each
// complaint begins with the name of its rule:
//   R1   each good event is learnt once, in the order of its partition, and nothing else is; there
//        is a letter for each bad one that the position has passed
//   R2   ledger and reported epsilon are never below what was released
//   R3   commits, steps and epsilon never go back, nor behind what brokers were told
//   R4   a commit has one head, and one store one lineage
//   R12  a process ends for a reason that is there, and says it
//   R13  ten quiet minutes after the last fault all is learnt
class Auditor {
 public:
  // `users`: the unit of the learner that pays is a user.
  Auditor(const test::Oracle& oracle, bool users) : oracle_(oracle), users_(users) {}

  // Each returns its complaints, a line each. `anchors`: the file of the ledger's heads.
  static std::string JudgeEnd(const End& end);
  std::string Judge(const Told& told, const std::string& anchors, const Cluster& cluster,
                    const Draws& draws, bool at_end);

  uint64_t steps_released() const { return released_; }

 private:
  // A trainer's word to its brokers: it has passed this offset with this commit.
  struct Mark {
    int64_t offset = 0;
    uint64_t commit = 0;
    std::string head, lineage;
  };
  static Mark MarkOf(const Cluster& cluster, int32_t partition);

  void JudgePartition(const Told& told, const Cluster& cluster, int32_t partition, bool at_end);
  void JudgeLetters(const Cluster& cluster);
  void JudgeMark(const Told& told, const Mark& mark);
  void JudgeAnchors(const Told& told, const std::string& anchors);
  void JudgeHead(uint64_t commit, const std::string& head, const char* who);
  void JudgeReleases(const Told& told, const Draws& draws);
  void JudgeOrder(const Told& told);
  void Complain(std::string words);

  const test::Oracle& oracle_;
  const bool users_;
  std::string complaints_;
  int complained_ = 0;
  std::vector<bool> in_log_;  // by event
  std::vector<std::pair<int32_t, int64_t>> bad_passed_, bad_, letters_;
  Told last_{};
  std::map<uint64_t, std::string> heads_;  // by commit, as they were told first
  uint64_t seen_ = 0;                      // draws until the last look
  uint64_t left_from_ = 0;                 // those from here on were not visible then
  uint64_t released_ = 0;
};

}  // namespace tacit::sim
