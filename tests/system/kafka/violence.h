#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/load.h"
#include "system/kafka/oracle.h"
#include "system/kafka/oracle_run.h"
#include "system/kafka/tcp_proxy.h"
#include "system/kafka/topic.h"

namespace tacit::test {

// Says how often each thing happens to a daemon beside its broker.
struct Harm {
  int daemon_kills = 0;  // SIGKILL at a random moment
  int broker_kills = 0;  // SIGKILL, some time of nothing, a new start
  int broker_stops = 0;  // SIGSTOP, some time of nothing, SIGCONT
  int takeovers = 0;     // the daemon dies while a standby waits for its store
  int refusals = 0;      // a second daemon on the store
  int growths = 0;       // a partition more
  int cuts = 0;          // of the network between the broker and all others
  int clock_steps = 0;   // by a day, forth and back again, while the daemon runs
  std::string Text() const;
};

// A broker behind a wire that can be cut, a topic that is written to all the time, and a daemon
// that learns from it, until harm comes to them. What was learnt in the end is the oracle's to
// tell. Failures are the test's; after a fatal one the object is of no more use. One thread.
class Violence {
 public:
  struct Options {
    uint64_t seed = 0;
    int32_t partitions = 3;
    double events_per_second = 300;
    std::chrono::seconds cut{10};
    // A broker that is killed or stopped is so for a random time up to this.
    std::chrono::milliseconds outage{3000};
    // Records are JSON, and the unit of `private` is the user, whose epsilon grows by the step.
    bool users = false;
    // Dead letters go into a topic.
    bool dead_letter_topic = false;
  };

  explicit Violence(Options options);
  ~Violence();

  // Harms in random order, until all is done or it is past the deadline; what was done.
  Harm Run(const Harm& wanted, std::chrono::steady_clock::time_point deadline);
  // Ends the load, lets the daemon learn to the end of the topic, and holds what it has learnt
  // against what is in the topic: every good event once by `exact`, kStepsPerPeriod times by
  // `period`, every bad one not at all and in the dead letters, and nothing else there.
  void Finish();

  // Milliseconds from a broker's return until steps are committed again, each time.
  const std::vector<double>& returns() const { return returns_; }
  // Good events that were learnt from once each, and bad ones in the dead letters.
  size_t applied() const { return applied_; }
  size_t dead() const { return dead_; }
  std::string Figures() const;

 private:
  using Act = void (Violence::*)();

  std::string WriteConfig();
  std::vector<std::string> Command(bool standby, std::string* url);
  void StartDaemon(std::vector<std::string> environment = {});
  void EnsureDaemon();
  // The daemon must not have ended by itself.
  void ExpectAlive(const std::string& when);
  void Bury(const std::string& how);

  // The daemon's own report; nothing when it does not answer.
  struct Told {
    uint64_t steps = 0, private_steps = 0;
    double epsilon = 0;  // of `private`
  };
  std::optional<Told> Ask(const std::string& url) const;
  uint64_t StepsNow();
  // Until more than `steps` are committed; how long that took.
  double AwaitMoreSteps(uint64_t steps, const std::string& when);
  void ExpectServing(const std::string& when);
  // Until /readyz begins like this; what it says of learning may come a while after the fact.
  void AwaitReadyz(const std::string& text, const std::string& when);
  void CheckEpsilon(const Told& told, const std::string& where);
  void CheckStore();

  void KillDaemon();
  void KillBroker();
  void StopBroker();
  void TakeOver();
  void Refuse();
  void Grow();
  void CutNetwork();
  void StepClock();

  void Fill();
  // That the topic holds what was acked, each event once; how often each good one is to be learnt.
  std::vector<int> CheckTopic(const std::vector<TopicRecord>& records);
  void AwaitEnd(const std::vector<int>& once);
  // Returns where each letter comes from, and why.
  DeadLetters ReadLetters();
  bool IsBad(const TopicRecord& record) const;
  void CheckDeadLetters(const std::vector<TopicRecord>& records);
  std::chrono::milliseconds Random(std::chrono::milliseconds max);

  const Options options_;
  std::mt19937_64 random_;
  TempDir dir_;
  TcpProxy proxy_;
  Broker broker_;
  Oracle oracle_;
  std::string config_;
  int32_t partitions_;
  std::unique_ptr<LoadWriter> load_;
  std::unique_ptr<Process> daemon_;
  std::string url_;
  int daemons_ = 0;
  Told last_;  // of what was seen committed; it may never go back
  std::vector<double> returns_, takeovers_;
  size_t applied_ = 0, dead_ = 0, dead_again_ = 0;
};

}  // namespace tacit::test
