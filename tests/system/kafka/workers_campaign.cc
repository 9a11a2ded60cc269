// The whole of what kafka_workers_test has a share of: a trainer, its standby, eight workers and
// their broker are killed at random moments, topic after topic. Each store has to be that of a
// trainer without workers, which learns each event once.
//   workers_campaign KILLS SECONDS SEED    this many kills, or until the time is up (fails then)
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <random>
#include <thread>

#include "system/kafka/workers_rig.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

uint64_t kills = 0, seed = 0;
seconds most(0);

constexpr size_t kWorkers = 8;
constexpr int kClicks = 100'000;  // of a topic
constexpr milliseconds kPauseMost(1500);

enum Victim : size_t { kTrainer, kStandby, kWorker, kBroker, kVictims };

// The least epsilon of one release with this noise, at delta 1e-6: the closed form of the Gaussian
// mechanism (Balle and Wang 2018), computed here.
double LeastEpsilon(double noise_multiplier) {
  const double mu = 1 / noise_multiplier;
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
  double low = 0, high = 1000;
  for (int i = 0; i < 200; ++i) {
    const double epsilon = (low + high) / 2;
    const double delta =
        phi(mu / 2 - epsilon / mu) - std::exp(epsilon) * phi(-mu / 2 - epsilon / mu);
    (delta > 1e-6 ? low : high) = epsilon;
  }
  return low;
}

class WorkersCampaign : public WorkersTest {
 protected:
  // One of two processes on the store: the trainer, or the one that waits for its end.
  struct Owner {
    std::unique_ptr<Process> process;
    std::string url;  // of its page for operators, which a standby does not answer
    double by_workers = 0, by_trainer = 0;
  };
  // The run over one topic.
  struct Round {
    std::array<uint64_t, kVictims> killed{};
    double by_workers = 0, by_trainer = 0, steps = 0, epsilon = 0;
    uint64_t looks = 0;
  };

  Owner NewOwner() {
    Owner owner;
    owner.url = "unix:" + (dir_ / fmt::format("owner-{}.operator", owners_++));
    auto command = CrashCommand(dir_, "store");
    command.insert(command.end(), {"--standby", "--set", "serve.operator_listen=" + owner.url});
    owner.process = std::make_unique<Process>(command);
    return owner;
  }

  // Looks at what the trainer says of its ledger: epsilon never goes back, nor is it below what one
  // release costs. Returns false where it says nothing.
  bool Look(Owner* owner) {
    const auto page = http::Fetch(owner->url + ":/metrics", "GET", "", seconds(5));
    if (!page) return false;
    const auto number = [&](const std::string& metric) {
      const size_t at = page->body.find("\n" + metric + " ");
      return at == std::string::npos ? 0 : std::stod(page->body.substr(at + metric.size() + 2));
    };
    owner->by_workers = number("tacit_slices_total{by=\"workers\"}");
    owner->by_trainer = number("tacit_slices_total{by=\"trainer\"}");
    const double steps = number("tacit_steps_committed_total{learner=\"ctr\"}");
    const double epsilon = number("tacit_privacy_epsilon{learner=\"ctr\"}");
    if (steps == 0) return true;
    ++round_.looks;
    EXPECT_GE(epsilon, bill_ * (1 - 1e-6)) << "below the bill after " << steps << " steps";
    EXPECT_GE(epsilon, round_.epsilon);
    round_.epsilon = epsilon;
    return true;
  }

  // Ends a process that must not have ended by itself.
  static void Kill(Process* process) {
    const auto ended = process->WaitFor(milliseconds(0));
    ASSERT_FALSE(ended) << "it has ended by itself, with " << ended->exit_code << ":\n"
                        << ended->err;
    process->Signal(SIGKILL);
    ASSERT_TRUE(process->Wait());
  }

  void KillBroker(milliseconds away) {
    SharedBroker().Kill();
    std::this_thread::sleep_for(away);
    SharedBroker().Start();
    ASSERT_TRUE(SharedBroker().running());
    ++round_.killed[kBroker];
  }

  void KillOwner(Owner* owner) {
    const bool trains = Look(owner);
    Count(*owner);
    Kill(owner->process.get());
    // A trainer that does not answer yet counts as a standby.
    ++round_.killed[trains ? kTrainer : kStandby];
    *owner = NewOwner();
  }

  void KillSomebody(std::mt19937_64& random) {
    const uint64_t whom = random() % 20;
    if (whom == 0) return KillBroker(milliseconds(random() % 3000));
    if (whom < 8) return KillOwner(&owners_now_[random() % 2]);
    auto& worker = workers_now_[random() % kWorkers];
    Kill(worker.get());
    worker = Worker("store");
    ++round_.killed[kWorker];
  }

  void Count(const Owner& owner) {
    round_.by_workers += owner.by_workers;
    round_.by_trainer += owner.by_trainer;
  }

  // Tells whether one of them has come to the end of the topic.
  bool IsDone() {
    for (Owner& owner : owners_now_) {
      const auto ended = owner.process->WaitFor(milliseconds(0));
      if (!ended) continue;
      EXPECT_EQ(ended->exit_code, 0) << ended->err;
      return true;
    }
    return false;
  }

  void Finish() {
    std::array<std::optional<Ended>, 2> ended;
    EXPECT_TRUE(Eventually(
        "the topic is learnt",
        [&] {
          for (size_t i = 0; i < ended.size(); ++i) {
            if (!ended[i]) Look(&owners_now_[i]);
            if (!ended[i]) ended[i] = owners_now_[i].process->WaitFor(milliseconds(20));
          }
          return ended[0] && ended[1];
        },
        10 * kPatience))
        << owners_now_[0].process->Err() << owners_now_[1].process->Err();
    for (size_t i = 0; i < ended.size(); ++i) {
      EXPECT_TRUE(ended[i] && ended[i]->exit_code == 0) << (ended[i] ? ended[i]->err : "");
      Count(owners_now_[i]);
    }
    for (auto& worker : workers_now_) {
      worker->Signal(SIGTERM);
      const auto ended = worker->Wait();
      EXPECT_TRUE(ended && ended->exit_code == 0);
    }
    ExpectSameStore("store", "plain");
    round_.steps = static_cast<double>(Outcome("store").steps);
  }

  Round round_;
  double bill_ = 0;  // of a record that is in one release of the first learner
  int owners_ = 0;
  std::array<Owner, 2> owners_now_;
  std::vector<std::unique_ptr<Process>> workers_now_;
};

std::string Line(const std::string& name, uint64_t events, double steps,
                 const std::array<uint64_t, kVictims>& killed, double by_workers, double by_trainer,
                 const std::string& outcome) {
  return fmt::format("{:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7} {:>11} {:>11}  {}", name, events,
                     steps, killed[kTrainer], killed[kStandby], killed[kWorker], killed[kBroker],
                     by_workers, by_trainer, outcome);
}

TEST_F(WorkersCampaign, Kills) {
  std::mt19937_64 random(seed);
  fmt::print("seed {}\n", seed);
  fmt::print("{:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7} {:>11} {:>11}\n", "topic", "events",
             "periods", "trainer", "standby", "workers", "broker", "by workers", "by trainer");
  const auto deadline = Steady::now() + most;
  const std::string learners =
      Learner("ctr", kBatch) + Learner("fewer", kBatch, "linear", "event", 6);
  std::array<uint64_t, kVictims> all{};
  uint64_t done = 0, events = 0;
  double steps = 0, by_workers = 0, by_trainer = 0;
  for (int number = 1; done < kills && Steady::now() < deadline && !HasFailure(); ++number) {
    round_ = {};
    for (const char* store : {"plain", "store"}) {
      std::filesystem::remove_all(dir_ / store);
      std::filesystem::remove(dir_ / (std::string(store) + ".witness"));
    }
    const std::string topic = NewTopic(kClicks, /*bad_from=*/6000, /*bad_to=*/6400);
    LearnPlain(topic, learners);
    for (const privacy::LedgerEntry& entry : Ledger("plain"))
      if (entry.learner == "ctr") bill_ = LeastEpsilon(entry.charge.noise_multiplier);
    ASSERT_GT(bill_, 0);
    WriteShared("store", topic, NewTopics(), learners);
    workers_now_ = StartWorkers("store", kWorkers);
    for (Owner& owner : owners_now_) owner = NewOwner();
    bool away = number > 1;  // once, for a minute
    const auto killed = [&] {
      uint64_t here = 0;
      for (const uint64_t count : round_.killed) here += count;
      return here;
    };
    while (done + killed() < kills && Steady::now() < deadline && !HasFailure() && !IsDone()) {
      std::this_thread::sleep_for(milliseconds(random() % kPauseMost.count()));
      if (IsDone()) break;
      if (!away && killed() >= 10) {
        KillBroker(seconds(60));
        away = true;
      } else {
        KillSomebody(random);
      }
    }
    if (!HasFatalFailure()) Finish();
    for (size_t victim = 0; victim < kVictims; ++victim) all[victim] += round_.killed[victim];
    done += killed();
    events += kClicks;
    steps += round_.steps;
    by_workers += round_.by_workers;
    by_trainer += round_.by_trainer;
    fmt::print("{}\n",
               Line(std::to_string(number), kClicks, round_.steps, round_.killed, round_.by_workers,
                    round_.by_trainer, HasFailure() ? "WRONG" : "each event once"));
    std::fflush(stdout);
  }
  fmt::print("{}\n", Line("all", events, steps, all, by_workers, by_trainer,
                          HasFailure() ? "WRONG" : "each event once, epsilon as billed"));
  EXPECT_GE(done, kills) << "the time is up";
}

}  // namespace
}  // namespace tacit::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 4) {
    std::cerr << "usage: workers_campaign KILLS SECONDS SEED\n";
    return 2;
  }
  tacit::test::kills = std::stoull(argv[1]);
  tacit::test::most = std::chrono::seconds(std::stoi(argv[2]));
  tacit::test::seed = std::stoull(argv[3]);
  return RUN_ALL_TESTS();
}
