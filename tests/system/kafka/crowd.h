#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/process.h"
#include "system/kafka/answers.h"
#include "system/kafka/broker.h"

namespace tacit::test {

// A trainer that learns from a topic and publishes into another, which is compacted all the time,
// and its replicas; until they and their broker are killed. Each is asked all the time, and the
// trainer's answers at a version are the oracle of all others' at that version. Failures are the
// test's; after a fatal one the object is of no more use. One thread.
class Crowd {
 public:
  struct Options {
    uint64_t seed = 0;
    int32_t partitions = 4;
    size_t replicas = 3;
    std::chrono::milliseconds outage{1500};  // a broker that is killed is away for so long at most
  };
  explicit Crowd(Options options);
  ~Crowd();

  void StartTrainer();
  void StartReplica();  // one more
  // Writes the events of this many steps.
  void Write(int steps);
  // Waits until the trainer has learnt all that was written, was asked everything at its last
  // version, and all replicas show that version. Then compares all answers so far.
  void Settle();
  // Kills one of them with SIGKILL at a random moment while steps are taken, and starts it again.
  void KillTrainer();
  void KillReplica();
  void KillBroker();
  // Kills the broker, once all are settled, and has it away for so long. All answer meanwhile, and
  // replicas as they did before; then they go on.
  void LoseBroker(std::chrono::seconds away);

  // Makes a copy of the feed in which rows of the newest version have older values, with all sums
  // as they have to be, and expects that the comparison sees what a replica of it answers.
  void ExpectMixIsSeen();

  size_t compared() const { return compared_; }  // (replica, version, question), distinct
  // The versions of the last comparison: seen with the trainer, and with the replica that has the
  // fewest.
  std::string Figures() const;
  uint64_t version() const { return trainer_.witness ? trainer_.witness->version() : 0; }

 private:
  struct Member {
    std::string name, url;
    std::unique_ptr<Process> process;
    std::unique_ptr<Witness> witness;
  };

  void WriteConfig();
  void MakeQuestions();
  void Start(Member& member, const std::string& topic);
  void Kill(Member& member);
  void ExpectAlive(Member& member);
  std::string AnswersOf(const Member& member);  // of members who may score
  std::string Ask(const Member& member, const std::string& path, const std::string& body = "");
  double Metric(const Member& member, const std::string& name);
  bool IsLearnt();
  void CheckSpending(const std::string& privacy);
  void CompareAll();
  // Copies the feed; returns false if no row was there before with another value.
  bool CopyMixed(const std::map<std::string, std::string>& before, const std::string& to);
  std::chrono::milliseconds Random(std::chrono::milliseconds most);

  const Options options_;
  std::mt19937_64 random_;
  TempDir dir_;
  Broker broker_;
  std::vector<Question> questions_;
  size_t ledger_ = 0, privacy_ = 0;  // their numbers
  Member trainer_;
  std::vector<std::unique_ptr<Member>> replicas_;
  std::string config_;
  uint64_t steps_ = 0;  // written
  int events_ = 0;
  double epsilon_ = 0;  // of `private`, the largest that was seen
  size_t compared_ = 0, unasked_ = 0, versions_ = 0;
};

}  // namespace tacit::test
