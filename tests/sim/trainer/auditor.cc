#include "sim/trainer/auditor.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/process.h"

namespace tacit::sim {
namespace {

// The learner that pays takes plain steps: clip, rate and batch as its configuration has them.
constexpr double kClip = 1, kRate = 0.01;
constexpr int kComplaintsMost = 10;

std::string FieldOf(const std::string& metadata, const std::string& name) {
  const size_t at = metadata.find(name + ":");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return metadata.substr(begin, metadata.find(' ', begin) - begin);
}

// The whole log of a partition, without transactions that were aborted or are open.
std::vector<ClusterRecord> LogOf(const Cluster& cluster, const std::string& topic,
                                 int32_t partition) {
  return cluster.Fetch(topic, partition, 0, size_t{1} << 30, true).records;
}

std::string HeaderOf(const ClusterRecord& record, const std::string& name) {
  for (const auto& [key, value] : record.headers)
    if (key == name) return value.value_or("");
  return "";
}

}  // namespace

std::string Auditor::JudgeEnd(const End& end) {
  const auto ended = [&](const std::string& rule) {
    return fmt::format("{}: the process ended with {}, signal {}\n", rule, end.exit_code,
                       end.signal);
  };
  if (end.signal != 0) {
    // RocksDB of Debian has assertions where a disk fails while it opens or closes.
    return end.signal == SIGABRT && end.fault_met ? "" : ended("R12");
  }
  switch (end.exit_code) {
    case kKilled:
    case kPowerEnded:
      return "";
    case 0:
      return end.asked_to_end ? "" : ended("R12");
    case kBehind:
      return end.fault_met ? "" : "R13: ten quiet minutes, and not all is learnt\n";
    case kDeaf:
      return "R13: the process goes on five minutes after SIGTERM\n";
    case kStuck:
      return ended("R13");
    default:
      break;
  }
  // A disk that fails is named.
  const bool named = end.words.find("/disk/") != std::string::npos;
  return end.fault_met && end.exit_code <= 3 && named ? "" : ended("R12");
}

void Auditor::Complain(std::string words) {
  if (++complained_ <= kComplaintsMost) complaints_ += std::move(words) + "\n";
}

Auditor::Mark Auditor::MarkOf(const Cluster& cluster, int32_t partition) {
  const auto told = cluster.CommittedOffset("trainer", "t", partition);
  if (!told) return {};
  const std::string commit = FieldOf(told->metadata, "seq");
  return {.offset = told->offset,
          .commit = commit.empty() ? 0 : std::stoull(commit),
          .head = FieldOf(told->metadata, "head"),
          .lineage = FieldOf(told->metadata, "lineage")};
}

std::string Auditor::Judge(const Told& told, const std::string& anchors, const Cluster& cluster,
                           const Draws& draws, bool at_end) {
  complaints_.clear();
  complained_ = 0;
  in_log_.assign(oracle_.size(), false);
  bad_.clear(), bad_passed_.clear(), letters_.clear();
  for (int32_t partition = 0; partition < cluster.Partitions("t"); ++partition) {
    JudgeMark(told, MarkOf(cluster, partition));
    JudgePartition(told, cluster, partition, at_end);
  }
  for (size_t event = 0; event < oracle_.size(); ++event)
    if (!in_log_[event] && told.applied[event] != 0)
      Complain(fmt::format("R1: event {} is learnt, and is not in the log", event));
  JudgeLetters(cluster);
  JudgeAnchors(told, anchors);
  JudgeOrder(told);
  JudgeReleases(told, draws);
  if (told.there) last_ = told;
  return std::exchange(complaints_, "");
}

void Auditor::JudgePartition(const Told& told, const Cluster& cluster, int32_t partition,
                             bool at_end) {
  const Mark mark = MarkOf(cluster, partition);
  const std::vector<ClusterRecord> log = LogOf(cluster, "t", partition);
  int64_t passed = mark.offset;  // all before it was taken
  // Brokers are told what both learners have passed.
  const bool level = told.exact.steps == told.paid.steps;
  for (const ClusterRecord& record : log) {
    const size_t event = *oracle_.EventIn(*record.value);
    if (told.applied[event] != 0) passed = std::max(passed, record.offset);
  }
  for (const ClusterRecord& record : log) {
    const size_t event = *oracle_.EventIn(*record.value);
    in_log_[event] = true;
    const auto complain = [&](const std::string& words) {
      Complain(fmt::format("R1: event {}, offset {} of partition {}, {}", event, record.offset,
                           partition, words));
    };
    const int times = told.applied[event];
    if (oracle_.IsBad(event)) {
      bad_.emplace_back(partition, record.offset);
      if (record.offset < passed || at_end) bad_passed_.emplace_back(partition, record.offset);
      if (times != 0) complain("is bad, and is learnt");
    } else if (times == 0) {
      if (record.offset < mark.offset)
        complain(fmt::format("is not learnt, and brokers were told of {}", mark.offset));
      else if (record.offset < passed)
        complain("is not learnt, and a later one is");
      else if (at_end)
        complain("is not learnt");
    } else if (times != 1) {
      complain(fmt::format("is learnt {} times", times));
    } else if (mark.commit == told.commit && level && record.offset >= mark.offset) {
      complain(fmt::format("is learnt, and its commit {} is at {}", mark.commit, mark.offset));
    }
  }
}

// A letter may come again; each that has to be there is, and no good record has one.
void Auditor::JudgeLetters(const Cluster& cluster) {
  for (int32_t partition = 0; partition < cluster.Partitions("dead"); ++partition)
    for (const ClusterRecord& letter : LogOf(cluster, "dead", partition))
      letters_.emplace_back(std::stoi(HeaderOf(letter, "__connect.errors.partition")),
                            std::stoll(HeaderOf(letter, "__connect.errors.offset")));
  for (const auto& [partition, offset] : bad_passed_)
    if (std::ranges::find(letters_, std::pair(partition, offset)) == letters_.end())
      Complain(fmt::format("R1: no letter names offset {} of partition {}", offset, partition));
  for (const auto& [partition, offset] : letters_)
    if (std::ranges::find(bad_, std::pair(partition, offset)) == bad_.end())
      Complain(fmt::format("R1: a letter names offset {} of partition {}, which is good or gone",
                           offset, partition));
}

void Auditor::JudgeMark(const Told& told, const Mark& mark) {
  if (mark.commit == 0) return;
  if (!told.there)
    return Complain(
        fmt::format("R3: brokers were told of commit {}, and the store cannot be read: {}",
                    mark.commit, told.why.data()));
  if (mark.lineage != told.lineage.data())
    Complain(fmt::format("R4: brokers were told of lineage {}, the store is of {}", mark.lineage,
                         told.lineage.data()));
  if (mark.commit > told.commit)
    Complain(fmt::format("R3: brokers were told of commit {}, the store is at {}", mark.commit,
                         told.commit));
  JudgeHead(mark.commit, mark.head, "brokers");
}

// Whole lines are on disk for good, so none names a commit that is not there.
void Auditor::JudgeAnchors(const Told& told, const std::string& anchors) {
  for (size_t begin = 0, end; (end = anchors.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string line = anchors.substr(begin, end - begin);
    const std::string commit = FieldOf(line, "\"commit\""), head = FieldOf(line, "\"head\"");
    if (commit.empty() || head.size() < 8 + 64)
      return Complain("R4: a line of the anchors is none: " + line);
    JudgeHead(std::stoull(commit), head.substr(8, 64), "an anchor");
    if (std::stoull(commit) > told.commit)
      Complain(
          fmt::format("R3: an anchor is of commit {}, the store is at {}", commit, told.commit));
  }
}

void Auditor::JudgeHead(uint64_t commit, const std::string& head, const char* who) {
  const auto [first, fresh] = heads_.try_emplace(commit, head);
  if (!fresh && first->second != head)
    Complain(fmt::format("R4: commit {} has head {} by {}, and {} before", commit, head, who,
                         first->second));
}

void Auditor::JudgeOrder(const Told& told) {
  if (told.there) JudgeHead(told.commit, told.head.data(), "the store");
  if (!last_.there) return;
  if (!told.there)
    return Complain(fmt::format("R3: the store was at commit {}, and cannot be read: {}",
                                last_.commit, told.why.data()));
  const auto goes_on = [&](const char* what, auto before, auto now) {
    if (now < before) Complain(fmt::format("R3: {} of {}, and {} before", what, now, before));
  };
  goes_on("commit", last_.commit, told.commit);
  goes_on("steps of exact", last_.exact.steps, told.exact.steps);
  goes_on("steps of private", last_.paid.steps, told.paid.steps);
  goes_on("epsilon", last_.paid.epsilon, told.paid.epsilon);
  if (std::string(last_.lineage.data()) != told.lineage.data())
    Complain("R4: the store has another lineage than before");
}

// Finds which of the sums have moved the parameters since the last look: the first ones of this
// life, since a start goes on from a commit; and before them first ones of those that were left of
// the life before, for a commit that its witness has not seen is shown to nobody until a start has
// found it. They are visible, so they are charged; the others are lost.
void Auditor::JudgeReleases(const Told& told, const Draws& draws) {
  if (told.paid.steps == 0) {
    if (draws.count != seen_) left_from_ = std::exchange(seen_, draws.count);
    return;
  }
  const auto& from = last_.there && last_.paid.steps > 0 ? last_.now : told.first;
  const auto distance = [&](const std::vector<double>& at) {
    double most = 0;
    for (uint32_t i = 0; i < told.numbers; ++i)
      most = std::max(most, std::abs(at[i] - told.now[i]) / (1 + std::abs(at[i])));
    return most;
  };
  const auto take = [&](uint64_t step, std::vector<double>* at) {
    const Draws::Draw& draw = draws.list[step];
    const double unit = std::exp2(std::round(std::log2(kClip / draw.bound)));
    for (uint32_t i = 0; i < told.numbers; ++i)
      (*at)[i] -= kRate / test::Oracle::kBatch * unit * static_cast<double>(draw.noised[i]);
  };
  constexpr double kRounding = 1e-4;  // of floats, over all steps of a life
  double nearest = HUGE_VAL;
  uint64_t of_before = 0, of_this = 0;
  std::vector<double> before(from.begin(), from.begin() + told.numbers);
  for (uint64_t i = left_from_;; ++i) {
    std::vector<double> at = before;
    for (uint64_t j = seen_;; ++j) {
      if (const double now = distance(at); now < nearest)
        nearest = now, of_before = i - left_from_, of_this = j - seen_;
      if (j == draws.count) break;
      take(j, &at);
    }
    if (i == seen_) break;
    take(i, &before);
  }
  released_ += of_before + of_this;
  left_from_ = draws.count == seen_ ? left_from_ + of_before : seen_ + of_this;
  seen_ = draws.count;
  if (nearest > kRounding)
    Complain(
        fmt::format("R2: no sums that were drawn lead to the parameters: the nearest are {} "
                    "steps on, and {} away",
                    of_before + of_this, nearest));
  if (told.paid.steps < released_)
    Complain(fmt::format("R2: the ledger has {} steps, and {} were released", told.paid.steps,
                         released_));
  const double due = test::Oracle::EpsilonAfter(released_, users_);
  if (told.paid.epsilon < due * (1 - 1e-3))
    Complain(fmt::format("R2: the ledger tells of epsilon {}, and {} steps cost {}",
                         told.paid.epsilon, released_, due));
}

}  // namespace tacit::sim
