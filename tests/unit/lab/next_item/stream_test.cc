// tacit evaluate sequence --stream: what is asked, what is learnt, when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>
#include <random>
#include <set>

#include "lab/next_item/sequence_data.h"
#include "lab/next_item/stream_replay.h"
#include "support/process.h"
#include "support/silent_noise.h"

namespace tacit::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SequenceStreamTest : public testing::Test {
 protected:
  Result<SequenceStream> Read(const std::string& text) {
    std::ofstream(dir_ / "data", std::ios::binary) << text;
    return ReadSequenceStream(dir_ / "data");
  }
  std::string Refusal(const std::string& text) {
    const auto stream = Read(text);
    return stream ? "" : stream.error().message;
  }

  test::TempDir dir_;
};

TEST_F(SequenceStreamTest, ALineIsAnEventInOrderOfTime) {
  const auto tabs = Read("u\t10\t5\t100\nv\t7\t1\t100\nu\tx\t3\t250\n");
  ASSERT_TRUE(tabs) << tabs.error().message;
  EXPECT_THAT(tabs->user, ElementsAre(0, 1, 0));
  EXPECT_THAT(tabs->data.items, ElementsAre("x", "10", "7")) << "by SHA-256";
  EXPECT_THAT(tabs->data.histories.Of(0), ElementsAre(1, 0));
  EXPECT_THAT(tabs->data.histories.Of(1), ElementsAre(2));
  const auto commas = Read("userId,movieId,rating,timestamp\nu,10,5,100\nv,7,1,100\nu,x,3,2.5e2");
  ASSERT_TRUE(commas) << commas.error().message;
  EXPECT_EQ(commas->data.identity, tabs->data.identity);
  const auto other = Read("v 7 1 100\nu 10 5 100\nu x 3 250\n");
  EXPECT_NE(other->data.identity, tabs->data.identity);
  EXPECT_THAT(Refusal("u 10 5 100\nv 7 1\n"), HasSubstr("data:2: 3 words"));
  EXPECT_THAT(Refusal("u 10 5 100\nv 7 1 late\n"), HasSubstr("data:2: timestamp late: no number"));
  EXPECT_THAT(Refusal("u 10 5 100\nv 7 1 99\n"), HasSubstr("data:2: timestamp 99"));
  EXPECT_THAT(Refusal("user item rating time\n"), HasSubstr("no line"));
}

// The acts of a replay, one line after the other: "learn N, user: known | new", "ask after N:
// history".
using Diary = std::multiset<std::string>;

std::string Text(std::span<const uint32_t> items) {
  std::string text;
  for (const uint32_t item : items) text += " " + std::to_string(item);
  return text;
}

// Keeps a diary, and scores item i by i.
class DiaryMethod final : public StreamMethod {
 public:
  // Spends this many times what it may.
  explicit DiaryMethod(double spends = 1) : spends_(spends) {}

  Result<privacy::Spending> Learn(const StreamPeriod& period, double mu, noise::NoiseSource&,
                                  WorkerPool&) override {
    for (size_t unit = 0; unit < period.histories.units(); ++unit) {
      const auto items = period.histories.Of(unit);
      const size_t known = period.known[unit];
      diary_.insert("learn " + std::to_string(periods_) + ", " +
                    std::to_string(period.histories.IdOf(unit)) + ":" + Text(items.first(known)) +
                    " |" + Text(items.subspan(known)));
    }
    ++periods_;
    return privacy::Spending{.mu_squared = spends_ * mu * mu};
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    std::lock_guard lock(mutex_);
    diary_.insert("ask after " + std::to_string(periods_) + ":" + Text(history));
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i);
  }
  const Diary& diary() const { return diary_; }

 private:
  const double spends_;
  int periods_ = 0;
  mutable std::mutex mutex_;
  mutable Diary diary_;
};

constexpr uint32_t kCountedItems = 30;

// The stream's events as pairs, and the stream of them.
using Events = std::vector<std::pair<uint32_t, uint32_t>>;
Events SomeEvents(size_t events, uint32_t users, uint64_t seed) {
  std::mt19937_64 random(seed);
  Events all;
  for (size_t i = 0; i < events; ++i) {
    // Users come and go.
    const auto user = static_cast<uint32_t>((i * users / events + random() % 3) % users);
    // Some items come in the last tenth alone.
    const uint32_t items = 10 * i < 9 * events ? kCountedItems - 8 : kCountedItems;
    all.emplace_back(user, static_cast<uint32_t>(random() % items));
  }
  return all;
}
SequenceStream StreamOf(const Events& events, uint32_t users) {
  SequenceStream stream;
  std::vector<std::vector<uint32_t>> of_user(users);
  for (const auto& [user, item] : events) {
    stream.user.push_back(user);
    of_user[user].push_back(item);
  }
  auto& histories = stream.data.histories;
  histories.catalogue = kCountedItems;
  for (const auto& items : of_user) {
    histories.items.insert(histories.items.end(), items.begin(), items.end());
    histories.end.push_back(histories.items.size());
  }
  return stream;
}

// The same by loops over the events, nothing kept but lists.
struct Expected {
  Diary diary;
  uint64_t asked = 0;
  double ndcg10 = 0, hit10 = 0;
  uint64_t cold = 0;  // asked about, of items that nobody had before the last tenth
  double cold_ndcg10 = 0, cold_hit10 = 0;
  size_t most = 0;  // periods of a user
};
Expected ByLoops(const Events& events, const StreamPlan& plan, uint32_t users) {
  Expected expected;
  std::vector<size_t> periods(users);
  for (size_t begin = 0, period = 0; begin < events.size(); begin += plan.period_events, ++period) {
    const size_t end = std::min<size_t>(events.size(), begin + plan.period_events);
    const auto items_of = [&](uint32_t user, size_t from, size_t to) {
      std::vector<uint32_t> items;
      for (size_t i = from; i < to; ++i)
        if (events[i].first == user) items.push_back(events[i].second);
      return items;
    };
    for (size_t i = begin; i < end && period > 0; ++i) {
      const auto& [user, answer] = events[i];
      const auto history = items_of(user, 0, i);
      if (history.empty() || std::ranges::count(history, answer) > 0) continue;
      expected.diary.insert("ask after " + std::to_string(period) + ":" + Text(history));
      // Larger items come first, except for those of the history.
      double place = 1;
      for (uint32_t item = answer + 1; item < kCountedItems; ++item)
        if (std::ranges::count(history, item) == 0) ++place;
      ++expected.asked;
      bool is_cold = true;
      for (size_t j = 0; 10 * j < 9 * events.size(); ++j)
        if (events[j].second == answer) is_cold = false;
      expected.cold += is_cold ? 1 : 0;
      if (place > 10) continue;
      expected.hit10 += 1;
      expected.ndcg10 += 1 / std::log2(place + 1);
      if (!is_cold) continue;
      expected.cold_hit10 += 1;
      expected.cold_ndcg10 += 1 / std::log2(place + 1);
    }
    if (end == events.size()) break;
    for (uint32_t user = 0; user < users; ++user) {
      const auto fresh = items_of(user, begin, end);
      if (fresh.empty() || periods[user] == plan.user_periods) continue;
      expected.most = std::max(expected.most, ++periods[user]);
      auto known = items_of(user, 0, begin);
      if (known.size() > plan.context)
        known.erase(known.begin(), known.end() - static_cast<ptrdiff_t>(plan.context));
      expected.diary.insert("learn " + std::to_string(period) + ", " + std::to_string(user) + ":" +
                            Text(known) + " |" + Text(fresh));
    }
  }
  return expected;
}

// Checks that a replay did what the loops say.
std::string CheckReplay(const Events& events, uint32_t users, const StreamPlan& plan,
                        const StreamPlan& planned) {
  WorkerPool workers({.workers = 2});
  noise::SilentNoise silence;
  DiaryMethod method;
  const auto outcome =
      ReplayStream(StreamOf(events, users), plan, method, silence, workers, [](double) {});
  if (!outcome) return outcome.error().message;
  const Expected expected = ByLoops(events, planned, users);
  const auto asked = static_cast<double>(expected.asked);
  uint64_t in_tenths = 0;
  double ndcg = 0;
  for (const SequenceTenth& tenth : outcome->tenths) {
    in_tenths += tenth.events;
    ndcg += static_cast<double>(tenth.events) * tenth.ndcg10;
  }
  if (method.diary() != expected.diary) return "another diary";
  if (outcome->all.events != expected.asked || in_tenths != expected.asked) return "events";
  if (std::abs(outcome->all.ndcg10 * asked - expected.ndcg10) > 1e-9 * asked ||
      std::abs(ndcg - expected.ndcg10) > 1e-9 * asked)
    return "NDCG@10";
  if (std::abs(outcome->all.hit10 * asked - expected.hit10) > 1e-9 * asked) return "HIT@10";
  const auto cold = static_cast<double>(expected.cold);
  if (outcome->cold.events != expected.cold ||
      std::abs(outcome->cold.ndcg10 * cold - expected.cold_ndcg10) > 1e-9 * cold ||
      std::abs(outcome->cold.hit10 * cold - expected.cold_hit10) > 1e-9 * cold)
    return "cold items";
  if (outcome->user_periods_most != expected.most) return "periods of a user";
  const double mu_squared = static_cast<double>(expected.most) * plan.mu * plan.mu;
  if (std::abs(outcome->mu_squared - mu_squared) > 1e-9) return "spent";
  return "";
}

TEST(ReplayStream, PredictsThenLearnsAsTheLoopsSay) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t users = 1 + static_cast<uint32_t>(random() % 12);
    const Events events = SomeEvents(20 + random() % 200, users, seed);
    const StreamPlan plan{.period_events = 1 + random() % 40,
                          .user_periods = 1 + static_cast<uint32_t>(random() % 4),
                          .mu = 0.5,
                          .context = static_cast<uint32_t>(random() % 6)};
    EXPECT_EQ(CheckReplay(events, users, plan, plan), "") << "seed " << seed;
  }
}

TEST(ReplayStream, SomeItemsAreCold) {
  const StreamPlan plan{.period_events = 20, .user_periods = 2, .mu = 0.5, .context = 3};
  EXPECT_GT(ByLoops(SomeEvents(300, 8, 7), plan, 8).cold, 3u);
}

// Planted: a user who is learnt from once too often, periods that are cut elsewhere, more context.
TEST(ReplayStream, AnotherReplayIsToldApart) {
  const Events events = SomeEvents(300, 8, 7);
  const StreamPlan plan{.period_events = 20, .user_periods = 2, .mu = 0.5, .context = 3};
  ASSERT_EQ(CheckReplay(events, 8, plan, plan), "");
  StreamPlan fault = plan;
  fault.user_periods = 3;
  EXPECT_EQ(CheckReplay(events, 8, fault, plan), "another diary");
  fault = plan;
  fault.period_events = 21;
  EXPECT_EQ(CheckReplay(events, 8, fault, plan), "another diary");
  fault = plan;
  fault.context = 4;
  EXPECT_EQ(CheckReplay(events, 8, fault, plan), "another diary");
}

TEST(ReplayStream, APeriodThatSpendsMoreThanItMayIsRefused) {
  const StreamPlan plan{.period_events = 20, .user_periods = 2, .mu = 0.5, .context = 3};
  WorkerPool workers({.workers = 1});
  noise::SilentNoise silence;
  for (const double spends : {1.0, 1 + 1e-11}) {
    DiaryMethod method(spends);
    const auto outcome = ReplayStream(StreamOf(SomeEvents(100, 8, 7), 8), plan, method, silence,
                                      workers, [](double) {});
    ASSERT_EQ(outcome.has_value(), spends == 1);
    if (spends > 1) {
      EXPECT_EQ(outcome.error().code, ErrorCode::kRefused);
    }
  }
}

}  // namespace
}  // namespace tacit::lab
