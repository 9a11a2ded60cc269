#include "cli/generate/interaction_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "base/auc.h"
#include "event/codec.h"

namespace tacit::cli {
namespace {

constexpr InteractionGeneratorOptions kSmall{
    .days = 6, .rows_per_day = 20000, .users = 1500, .items = 300, .seed = 7};

std::string Lines(const InteractionGeneratorOptions& options, uint64_t piece) {
  InteractionGenerator generator(options);
  std::string lines;
  while (generator.Generate(piece, &lines) > 0) {
  }
  return lines;
}

const event::FeatureTransform& Transform() {
  static const event::FeatureTransform transform(
      event::FeatureSchema{.dense = {{"position", event::DenseTransform::kIdentity}},
                           .categorical = {{.name = "hour", .buckets = 100, .dim = 2},
                                           {.name = "device", .buckets = 100, .dim = 2},
                                           {.name = "genre", .buckets = 100, .dim = 2}}});
  return transform;
}

// A stream as a daemon would read it.
struct EventStream {
  explicit EventStream(const InteractionGeneratorOptions& options) : generator(options) {
    auto parsed = event::ItemCatalogue::Parse(generator.world().CatalogueText(), "items.dat");
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    items = std::make_shared<const event::ItemCatalogue>(std::move(*parsed));
    Transform().StartBatch(&batch);
    const auto codec = event::MakeJsonCodec(
        Transform(), {.missing = event::MissingPolicy::kReject, .items = items});
    for (std::string lines; generator.Generate(5000, &lines) > 0; lines.clear()) {
      event::RawRecords records;
      records.first_offset = batch.size() + dead.size();
      for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos;
           begin = end + 1) {
        records.bytes.append(lines, begin, end - begin);
        records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
      }
      codec->Decode(records, &batch, &dead);
    }
  }
  // A day of a row, by its time.
  int64_t DayOf(size_t i) const { return batch.timestamp_ms[i] / 86'400'000 - 19723; }

  InteractionGenerator generator;
  std::shared_ptr<const event::ItemCatalogue> items;
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
};

const EventStream& SharedEvents() {
  static const EventStream stream(kSmall);
  return stream;
}

TEST(InteractionGenerator, BytesFollowFromTheOptions) {
  auto options = kSmall;
  options.rows_per_day = 1500;
  const std::string lines = Lines(options, 1000);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 9000);
  EXPECT_EQ(Lines(options, 77), lines);
  auto other = options;
  other.seed = 8;
  EXPECT_NE(Lines(other, 1000), lines);
  EXPECT_EQ(InteractionGenerator(options).world().CatalogueText(),
            InteractionGenerator(options).world().CatalogueText());
  EXPECT_NE(InteractionGenerator(options).world().CatalogueText(),
            InteractionGenerator(other).world().CatalogueText());
}

TEST(InteractionGenerator, RecordsAreInteractionsOfTheCatalogue) {
  const EventStream& stream = SharedEvents();
  ASSERT_TRUE(stream.dead.empty()) << stream.dead[0].reason;
  ASSERT_EQ(stream.batch.size(), kSmall.days * kSmall.rows_per_day);
  EXPECT_EQ(stream.items->items(), kSmall.items);
  EXPECT_TRUE(stream.items->described());
  EXPECT_TRUE(std::ranges::is_sorted(stream.batch.timestamp_ms));
  std::set<std::string_view> ids, users;
  for (size_t i = 0; i < stream.batch.size(); ++i) {
    ASSERT_LT(stream.batch.item[i], kSmall.items);
    ASSERT_EQ(stream.DayOf(i), static_cast<int64_t>(i / kSmall.rows_per_day));
    ids.insert(stream.batch.event_id[i]);
    users.insert(stream.batch.user[i]);
  }
  EXPECT_EQ(ids.size(), stream.batch.size());
  EXPECT_GT(users.size(), kSmall.users * 9 / 10);
  EXPECT_LE(users.size(), kSmall.users);
}

TEST(InteractionGenerator, NewItemsComeAndPopularityDrifts) {
  const EventStream& stream = SharedEvents();
  const InteractionWorld& world = stream.generator.world();
  std::vector<std::vector<uint32_t>> count(kSmall.days, std::vector<uint32_t>(kSmall.items));
  size_t of_new = 0;
  for (size_t i = 0; i < stream.batch.size(); ++i) {
    const uint32_t item = stream.batch.item[i];
    const auto day = static_cast<uint32_t>(stream.DayOf(i));
    ASSERT_GE(day, world.first_day(item));
    of_new += world.first_day(item) > 0 ? 1 : 0;
    ++count[day][item];
  }
  EXPECT_GT(of_new, stream.batch.size() / 20);
  const auto top = [&](uint32_t day) {
    std::vector<uint32_t> order(kSmall.items);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, std::greater<>(), [&](uint32_t i) { return count[day][i]; });
    return std::set<uint32_t>(order.begin(), order.begin() + 20);
  };
  std::vector<uint32_t> both;
  const auto first = top(0), last = top(kSmall.days - 1);
  std::ranges::set_intersection(first, last, std::back_inserter(both));
  EXPECT_LT(both.size(), 18u);
}

TEST(InteractionGenerator, NobodyTakesAnItemTwice) {
  const EventStream& stream = SharedEvents();
  std::set<std::pair<std::string_view, uint32_t>> taken;
  size_t all = 0;
  for (size_t i = 0; i < stream.batch.size(); ++i) {
    if (stream.batch.label[i] == 0) continue;
    ++all;
    taken.emplace(stream.batch.user[i], stream.batch.item[i]);
  }
  EXPECT_GT(all, stream.batch.size() / 5);
  EXPECT_LE(all - taken.size(), all / 1000);  // but who has taken nearly all
}

// A forecast of 30 % comes true in 30 % of the cases: the truth by Bayes is that of the draws.
TEST(InteractionGenerator, TheTruthIsCalibrated) {
  const InteractionTruth& truth = SharedEvents().generator.truth();
  ASSERT_EQ(truth.label.size(), kSmall.days * kSmall.rows_per_day);  // so few are all looked at
  constexpr size_t kBins = 20;
  std::array<double, kBins> expected{}, variance{}, seen{};
  for (size_t i = 0; i < truth.label.size(); ++i) {
    const double p = truth.probability[i];
    const size_t bin = std::min(kBins - 1, static_cast<size_t>(p * kBins));
    expected[bin] += p;
    variance[bin] += p * (1 - p);
    seen[bin] += truth.label[i];
  }
  for (size_t bin = 0; bin < kBins; ++bin)
    EXPECT_NEAR(seen[bin], expected[bin], 4.5 * std::sqrt(variance[bin]) + 1) << bin;
  const double auc = ExactAuc(truth.probability, truth.label);
  EXPECT_GT(auc, 0.7);
  EXPECT_LT(auc, 0.9);
  // A model without items can know less.
  std::vector<float> position;
  for (size_t i = 0; i < SharedEvents().batch.size(); ++i)
    position.push_back(-SharedEvents().batch.dense[i]);
  EXPECT_GT(auc, ExactAuc(position, SharedEvents().batch.label) + 0.1);
}

// The pairs of items in sequence are counted on all days but the last, and the last is predicted:
// better than popularity can, and not better than the truth does.
TEST(InteractionGenerator, SequencesCanBeLearntAndPopularityIsNotEnough) {
  const EventStream& stream = SharedEvents();
  const InteractionTruth& truth = stream.generator.truth();
  const auto share = [&](uint64_t hits) {
    return static_cast<double>(hits) / static_cast<double>(truth.asked);
  };
  const double best = share(truth.best_hits), popular = share(truth.popular_hits);
  EXPECT_GT(best, 2 * popular);
  EXPECT_LT(best, 0.8);

  std::map<std::string_view, std::vector<uint32_t>> history;
  std::vector<std::vector<double>> follows(kSmall.items, std::vector<double>(kSmall.items));
  std::vector<double> count(kSmall.items);
  size_t asked = 0, hits = 0;
  for (size_t i = 0; i < stream.batch.size(); ++i) {
    if (stream.batch.label[i] == 0) continue;
    const uint32_t item = stream.batch.item[i];
    std::vector<uint32_t>& before = history[stream.batch.user[i]];
    if (stream.DayOf(i) < kSmall.days - 1) {
      if (!before.empty()) ++follows[before.back()][item];
      ++count[item];
    } else if (!before.empty()) {
      const auto score = [&](uint32_t b) {
        return follows[before.back()][b] + count[b] / static_cast<double>(stream.batch.size());
      };
      size_t rank = 0;
      for (uint32_t b = 0; b < kSmall.items; ++b)
        if (score(b) > score(item) && std::ranges::find(before, b) == before.end()) ++rank;
      ++asked;
      hits += rank < 10 ? 1 : 0;
    }
    before.push_back(item);
  }
  const double learnt = static_cast<double>(hits) / static_cast<double>(asked);
  RecordProperty(
      "hit10", std::to_string(best) + " " + std::to_string(learnt) + " " + std::to_string(popular));
  EXPECT_GT(learnt, 1.3 * popular);
  EXPECT_LT(learnt, best + 0.02);
}

// The same rows in the forms of published data, against the JSON that says what they are.
TEST(InteractionGenerator, PublishedFormsHoldTheSameRows) {
  auto options = kSmall;
  options.rows_per_day = 500;
  std::istringstream json(Lines(options, 1000));
  options.form = InteractionForm::kUserItem;
  std::istringstream taken(Lines(options, 70));
  options.form = InteractionForm::kRatings;
  std::istringstream rated(Lines(options, 2000));
  size_t rows = 0, labels = 0;
  for (std::string line; std::getline(json, line); ++rows) {
    const auto part = [&](const std::string& before) {
      const size_t begin = line.find(before) + before.size();
      return line.substr(begin, line.find_first_of("\",", begin) - begin);
    };
    const std::string user = part("\"user\":\"u"), item = part("\"item\":\"");
    int64_t seconds = 0;
    std::string rated_user, rated_item;
    int stars = 0;
    ASSERT_TRUE(rated >> rated_user >> rated_item >> stars >> seconds);
    EXPECT_EQ(rated_user, user);
    EXPECT_EQ(rated_item, item);
    EXPECT_EQ(seconds, std::stoll(part("\"timestamp_ms\":")) / 1000);
    EXPECT_GE(stars, 1);
    EXPECT_LE(stars, 5);
    EXPECT_EQ(stars >= 4, part("\"label\":") == "1") << line;
    if (stars < 4) continue;
    ++labels;
    std::string taken_user, taken_item;
    ASSERT_TRUE(taken >> taken_user >> taken_item);
    EXPECT_EQ(taken_user, user);
    EXPECT_EQ(taken_item, item);
  }
  EXPECT_EQ(rows, kSmall.days * 500);
  EXPECT_GT(labels, 500);
  std::string more;
  EXPECT_FALSE(taken >> more);
  EXPECT_FALSE(rated >> more);
}

TEST(InteractionGenerator, OneOfEachIsAStreamToo) {
  InteractionGenerator generator({.days = 1, .rows_per_day = 3, .users = 1, .items = 1, .seed = 1});
  std::string lines;
  EXPECT_EQ(generator.Generate(10, &lines), 3u);
  EXPECT_EQ(generator.Generate(10, &lines), 0u);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  for (const float p : generator.truth().probability) EXPECT_TRUE(std::isfinite(p));
}

}  // namespace
}  // namespace tacit::cli
