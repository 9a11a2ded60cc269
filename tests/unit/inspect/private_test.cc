// Inspections by noised counts: without noise they are the raw counts; a unit moves them by no more
// than they say; at epsilon 1 they propose what raw counts do.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "inspect/noised_counts.h"
#include "inspect/private_columns.h"
#include "inspect/private_findings.h"
#include "inspect/proposal.h"
#include "inspect/shape.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "support/silent_noise.h"
#include "support/temp_dir.h"
#include "unit/inspect/logs.h"
#include "wiring/restore/inspection.h"

namespace tacit::inspect {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::string AppLine(uint64_t i, std::mt19937_64& random) {
  const uint64_t user = random() % 900;
  std::string line = fmt::format(
      "{{\"uid\":\"u{}\",\"clicked\":{},\"at\":{},\"where\":{{\"hour\":{},\"app\":\"a{}\"}}", user,
      random() % 4 == 0 ? 1 : 0, 1'767'225'600 + i * 7, random() % 24, random() % 500);
  if (random() % 5 != 0) line += fmt::format(",\"price\":{:.3f}", std::exp(random() % 7) + 0.5);
  if (random() % 2 == 0)
    line += fmt::format(",\"tags\":[\"t{}\",\"t{}\"]", random() % 40, random() % 9);
  return line + "}";
}

std::vector<std::string> AppLog(uint64_t seed, size_t rows) {
  std::mt19937_64 random(seed);
  std::vector<std::string> lines;
  for (size_t i = 0; i < rows; ++i) lines.push_back(AppLine(i, random));
  return lines;
}

std::string TextOf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

class PrivateTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    test::WriteFile(dir_ / name, text);
    return dir_ / name;
  }
  std::unique_ptr<PrivateFindings> Find(PrivateLook look, double noise_multiplier,
                                        noise::NoiseSource& noise) {
    auto findings = PrivateFindings::Make(std::move(look), noise_multiplier, noise);
    EXPECT_TRUE(findings) << findings.error().message;
    return findings ? std::move(*findings) : nullptr;
  }
  const std::vector<std::string> places_ = {"/uid",       "/clicked", "/at",  "/where/hour",
                                            "/where/app", "/price",   "/tags"};
  // The counts of these lines as they are weighted, before noise.
  NoisedCounts CountsOf(const std::vector<std::string>& lines, PrivateLook look) {
    look.records = RecordsOfFiles({Write("counted", TextOf(lines))});
    NoisedCounts counts(1);
    const auto raw = ReadPrivately(look, {.format = Format::kJson}, places_);
    EXPECT_TRUE(raw);
    AddSample(*raw, look.bound(), &counts);
    return counts;
  }

  test::TempDir dir_;
  noise::SilentNoise silent_;
};

double DistanceOf(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

TEST_F(PrivateTest, WithoutNoiseTheCountsAreTheRawOnes) {
  std::vector<std::string> lines = AppLog(3, 3000);
  lines[700] = "{\"uid\":";
  lines[1800] = lines[1799];
  const std::string file = Write("log", TextOf(lines));
  const auto raw = ReadSample({file}, {.format = Format::kJson});
  ASSERT_TRUE(raw) << raw.error().message;
  const auto found = Find({.records = RecordsOfFiles({file})}, 0, silent_);
  const Sample& sample = found->sample();
  EXPECT_EQ(sample.lines, raw->lines);
  EXPECT_EQ(sample.rows, raw->rows);
  EXPECT_EQ(sample.repeats, raw->repeats);
  EXPECT_EQ(sample.lines_in_all, raw->lines_in_all);
  ASSERT_EQ(sample.columns.size(), raw->columns.size());
  for (size_t c = 0; c < sample.columns.size(); ++c) {
    const Column& column = sample.columns[c];
    const auto twin = std::ranges::find(raw->columns, column.place, &Column::place);
    ASSERT_NE(twin, raw->columns.end()) << column.place;
    SCOPED_TRACE(column.place);
    EXPECT_THAT(column.texts, testing::IsEmpty()) << "no value of a record is kept";
    EXPECT_TRUE(column.code.empty() && column.number.empty());
    EXPECT_EQ(column.integers, twin->integers);
    EXPECT_EQ(column.fractions, twin->fractions);
    EXPECT_EQ(column.words, twin->words);
    EXPECT_EQ(column.lists, twin->lists);
    const Profile profile = ProfileOf(*twin, raw->rows), &noised = found->profiles()[c];
    EXPECT_EQ(noised.present, profile.present);
    EXPECT_EQ(noised.distinct, profile.distinct);
    EXPECT_NEAR(noised.missing, profile.missing, 1e-9);
    EXPECT_NEAR(noised.missing_first, profile.missing_first, 2e-3)
        << "halves of lines, not of rows";
    EXPECT_EQ(noised.zero_or_one, profile.zero_or_one);
    EXPECT_EQ(noised.time_unit, profile.time_unit);
    if (column.place == "/tags") {
      EXPECT_EQ(noised.elements, profile.elements);
    }
  }
}

// Their numbers would pass for milliseconds.
TEST_F(PrivateTest, TimesWithoutAZoneAreTexts) {
  const std::string text = test::DatedShopAsJson(test::DatedShopAsCsv(2, 2000));
  const auto found = Find({.records = RecordsOfFiles({Write("dated", text)})}, 0, silent_);
  const std::vector<Column>& columns = found->sample().columns;
  const auto at = std::ranges::find(columns, "/at", &Column::place);
  ASSERT_NE(at, columns.end());
  EXPECT_EQ(at->words, 2000u);
  EXPECT_FALSE(found->profiles()[static_cast<size_t>(at - columns.begin())].time_unit);
  const Roles roles = FindRoles(found->sample(), found->profiles(), found->evidence(), {});
  EXPECT_THAT(roles.features, Not(Contains(testing::Field(&FeatureRole::name, testing::Eq("at")))));
  EXPECT_THAT(roles.warnings,
              Contains(AllOf(HasSubstr("\"/at\" seems to be a time, and is left out"),
                             HasSubstr("a private look takes times without a zone for texts"),
                             HasSubstr("timestamp_unit: datetime"))));
  // A person's word is not enough, for nothing says in which form they are.
  const Roles said =
      FindRoles(found->sample(), found->profiles(), found->evidence(), {.time = "/at"});
  EXPECT_FALSE(said.time);
  EXPECT_EQ(said.refused, "");
  EXPECT_EQ(said.warnings, roles.warnings);
}

// Guesses by noised counts have their grounds too, and a person's word makes facts of them.
TEST_F(PrivateTest, PartsAreGuessedUnlessAPersonNamesThem) {
  noise::FixedNoise noise(4);
  const auto found =
      Find({.records = RecordsOfFiles({Write("app", TextOf(AppLog(11, 30'000)))})}, 4.2, noise);
  const auto roles_of = [&](const Named& named) {
    return FindRoles(found->sample(), found->profiles(), found->evidence(), named);
  };
  const Roles guessed = roles_of({});
  const Roles said = roles_of({.label = "/clicked", .user = "/uid", .time = "/at"});
  ASSERT_EQ(NamedParts(guessed).size(), 3u);
  ASSERT_EQ(NamedParts(said).size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(NamedParts(guessed)[i].grounds->guessed) << i;
    EXPECT_FALSE(NamedParts(said)[i].grounds->guessed) << i;
    EXPECT_EQ(NamedParts(guessed)[i].column, NamedParts(said)[i].column) << i;
  }
}

// A label of 0 and 1 in quotes has words for the codec.
TEST_F(PrivateTest, ALabelInQuotesHasWords) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("{{\"click\":\"{}\",\"shelf\":\"s{}\"}}\n", i % 10 < 3 ? 1 : 0, i % 9);
  const auto found = Find({.records = RecordsOfFiles({Write("quoted", text)})}, 0, silent_);
  for (const Named& named : {Named{}, Named{.label = "/click"}}) {
    const Roles roles = FindRoles(found->sample(), found->profiles(), found->evidence(), named);
    ASSERT_TRUE(roles.label);
    EXPECT_EQ(roles.label->values, (config::Words{{"0", "0"}, {"1", "1"}}));
  }
}

// The oracle is arithmetic: all counts are formed of neighbouring logs, and compared.
TEST_F(PrivateTest, ARecordMovesAllCountsByNoMoreThanTheySay) {
  std::vector<std::string> lines = AppLog(5, 60);
  lines[11] = "no JSON";
  lines[20] = lines[21];
  lines[30] =
      R"({"uid":7,"clicked":"1","at":"2026-01-01T00:00:00Z","tags":["a","b","c","d","e","f","g","h","i","j"],"price":{}})";
  lines[31] =
      R"({"uid":"x","clicked":true,"at":1.5,"where":{"hour":3,"app":"p|q|r"},"tags":[1,[2]],"price":4})";
  const PrivateLook look;
  const NoisedCounts whole = CountsOf(lines, look);
  double most = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> without = lines;
    without[i].clear();  // nulled: its place stays
    const double moved = DistanceOf(whole.weighted(), CountsOf(without, look).weighted());
    EXPECT_LE(moved, whole.sensitivity()) << lines[i];
    most = std::max(most, moved);
  }
  EXPECT_GT(most, whole.sensitivity() / 3) << "the bound is not far from what is so";
  // A bound that is planted too small is found.
  NoisedCounts small(1);
  const std::vector<double> pair = {1, 1};
  small.Add(pair, 1);
  EXPECT_GT(DistanceOf(small.weighted(), {0, 0}), small.sensitivity());
  // The last one added moves no other.
  std::vector<std::string> shorter(lines.begin(), lines.end() - 1);
  shorter.emplace_back();
  EXPECT_LE(DistanceOf(whole.weighted(), CountsOf(shorter, look).weighted()), whole.sensitivity());
}

// The records of a topic, or what a test makes of them.
class ListedRecords final : public Records {
 public:
  explicit ListedRecords(std::vector<std::optional<std::string>> values, bool nulls_are_told = true)
      : values_(std::move(values)), nulls_are_told_(nulls_are_told) {}
  const std::vector<std::string>& origins() const override { return names_; }
  const std::vector<std::string>& parts() const override { return names_; }
  bool may_have_headers() const override { return false; }
  Status ForEach(size_t, const Use& use, double* share_read) const override {
    for (size_t i = 0; i < values_.size(); ++i) {
      Record record{.number = i};
      if (values_[i])
        record.text = *values_[i];
      else
        record.fault = "null value";
      record.is_null = nulls_are_told_ && !values_[i];
      if (!use(record)) break;
    }
    if (share_read != nullptr) *share_read = 1;
    return {};
  }

 private:
  const std::vector<std::string> names_ = {"topic"};
  const std::vector<std::optional<std::string>> values_;
  const bool nulls_are_told_;
};

// A record that is nulled is a tombstone: its offset stays, and it counts nothing.
TEST_F(PrivateTest, ARecordOfATopicThatIsNulledMovesAllCountsByNoMoreThanTheySay) {
  const std::vector<std::string> lines = AppLog(5, 40);
  const std::vector<std::optional<std::string>> values(lines.begin(), lines.end());
  const auto counts_of = [&](std::vector<std::optional<std::string>> with, bool nulls_are_told) {
    PrivateLook look;
    look.records = std::make_shared<ListedRecords>(std::move(with), nulls_are_told);
    NoisedCounts counts(1);
    const auto raw = ReadPrivately(look, {.format = Format::kJson}, places_);
    EXPECT_TRUE(raw);
    AddSample(*raw, look.bound(), &counts);
    return counts;
  };
  const NoisedCounts whole = counts_of(values, true);
  double most = 0, planted = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<std::optional<std::string>> without = values;
    without[i].reset();
    const auto moved = [&](bool nulls_are_told) {
      return DistanceOf(whole.weighted(), counts_of(without, nulls_are_told).weighted());
    };
    EXPECT_LE(moved(true), whole.sensitivity()) << lines[i];
    most = std::max(most, moved(true));
    planted = std::max(planted, moved(false));
  }
  EXPECT_GT(most, 0);
  // Planted: a tombstone that counts as a record that cannot be read moves one more count.
  EXPECT_GT(planted, most);
}

TEST_F(PrivateTest, AUserOfManyRecordsMovesThemByNoMoreThanTheySay) {
  std::vector<std::string> lines = AppLog(7, 200);
  std::mt19937_64 random(1);
  for (size_t i = 0; i < lines.size(); i += 3) {
    lines[i] = AppLine(i, random);
    lines[i].replace(0, lines[i].find(','), "{\"uid\":\"busy\"");
  }
  const PrivateLook look{.unit = privacy::Unit::kUser, .user = "/uid", .user_records = 5};
  std::vector<std::string> without = lines;
  for (std::string& line : without)
    if (line.find("busy") != line.npos) line.clear();
  const NoisedCounts whole = CountsOf(lines, look);
  const double moved = DistanceOf(whole.weighted(), CountsOf(without, look).weighted());
  EXPECT_LE(moved, whole.sensitivity());
  // Planted: nothing bounds the records of a user.
  PrivateLook unbounded = look;
  unbounded.user_records = 4096;
  EXPECT_GT(
      DistanceOf(CountsOf(lines, unbounded).weighted(), CountsOf(without, unbounded).weighted()),
      whole.sensitivity());
}

// A producer can give an id the code of another: codes are 32 bits of a public hash.
TEST_F(PrivateTest, AUserWhoseCodeIsAnotherUsersMovesOneCountOfUsers) {
  std::map<uint32_t, std::string> ids;
  std::string one, other;
  for (int i = 0; other.empty(); ++i) {
    const std::string id = fmt::format("u{}", i);
    const auto [first, fresh] = ids.emplace(CodeOfValue(id), id);
    if (!fresh) std::tie(one, other) = std::pair(first->second, id);
  }
  constexpr uint64_t kPeriod = 10;
  const auto periods_of = [&](bool with_other) {
    std::vector<std::string> lines;
    for (uint64_t line = 0; line < 4 * kPeriod; ++line) {
      const std::string& user = line < 2 * kPeriod ? one : other;
      lines.push_back(user == other && !with_other
                          ? ""
                          : fmt::format("{{\"uid\":\"{}\",\"clicked\":{}}}", user, line % 2));
    }
    const auto found = Find({.records = RecordsOfFiles({Write("log", TextOf(lines))}),
                             .fields = {"/uid", "/clicked"},
                             .unit = privacy::Unit::kUser,
                             .user = "/uid",
                             .user_records = 4096},
                            0, silent_);
    return found->evidence().Visits(0, {0, kPeriod, 2 * kPeriod, 3 * kPeriod}).periods;
  };
  // Each of them is in two periods. As one user they would be in four, and one that is nulled would
  // move two counts.
  EXPECT_THAT(periods_of(true), ElementsAre(2u, 2u));
  EXPECT_THAT(periods_of(false), ElementsAre(2u));
}

// The most records of a user and the most fields that may be asked for, at the most noise.
TEST_F(PrivateTest, TheMostThatMayBeAskedForFitsTheGrid) {
  const std::string file = Write("log", TextOf(AppLog(1, 50)));
  const double noise = wiring::InspectionNoise(1e-3, 1e-300);
  PrivateLook look{.records = RecordsOfFiles({file}),
                   .named = {"/uid"},
                   .unit = privacy::Unit::kUser,
                   .user = "/uid",
                   .user_records = kUserRecordsMost};
  ASSERT_NE(Find(look, noise, silent_), nullptr) << "fields are found";
  for (size_t i = 1; i < kPrivateFieldsMost; ++i) look.fields.push_back(fmt::format("/f{}", i));
  const auto found = Find(look, noise, silent_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->sample().columns.size(), kPrivateFieldsMost);
}

TEST_F(PrivateTest, OfTooManyNamesThoseThatMostHaveAreShown) {
  const std::vector<std::pair<std::string, double>> noised = {
      {"a", 50}, {"b", 70}, {"c", 60}, {"d", 40}};
  EXPECT_THAT(NamesAbove(noised, 45, 9), ElementsAre("a", "b", "c"));
  EXPECT_THAT(NamesAbove(noised, 45, 2), ElementsAre("b", "c"));
}

TEST_F(PrivateTest, RecordsWithoutAUserCountNothingWhereUsersArePromised) {
  std::vector<std::string> lines = AppLog(7, 100);
  const std::string file = Write("log", TextOf(lines) + "{\"clicked\":1}\nno JSON\n");
  const auto found = Find({.records = RecordsOfFiles({file}),
                           .unit = privacy::Unit::kUser,
                           .user = "/uid",
                           .user_records = 4096},
                          0, silent_);
  EXPECT_EQ(found->sample().lines, 100u);
}

TEST_F(PrivateTest, AFieldOfOneRecordIsNotShownUnlessItIsNamed) {
  std::vector<std::string> lines = AppLog(9, 20'000);
  lines[77] = R"({"uid":"u1","clicked":1,"anna@example.org":"secret","at":1767225600})";
  const std::string file = Write("log", TextOf(lines));
  noise::FixedNoise noise(4);
  const auto found = Find({.records = RecordsOfFiles({file})}, 4.2, noise);
  std::vector<std::string> places;
  for (const Column& column : found->sample().columns) places.push_back(column.place);
  EXPECT_THAT(places, UnorderedElementsAre("/uid", "/clicked", "/at", "/where/hour", "/where/app",
                                           "/price", "/tags"));
  // A threshold that is not there shows it: the oracle of this test can fail.
  const auto counts = CountFields({.records = RecordsOfFiles({file})});
  ASSERT_TRUE(counts);
  EXPECT_THAT(NamesAbove(*counts, 1), Contains("/anna@example.org"));
  EXPECT_THAT(NamesAbove(*counts, found->name_threshold()), Not(Contains("/anna@example.org")));
  const auto named =
      Find({.records = RecordsOfFiles({file}), .named = {"/anna@example.org"}}, 4.2, noise);
  EXPECT_EQ(named->sample().columns.size(), 8u);
  EXPECT_EQ(named->profiles().back().present, 0u) << "it does not stand out of the noise";
}

TEST_F(PrivateTest, TheThresholdLeavesOneUnitsNamesLessThanTwoToTheMinus128) {
  const double bound = 20, deviation = 20 * 8 * 9.4;
  const double names = static_cast<double>(kNamesOfUnitMost);
  const double z = (NameThreshold(bound, deviation) - bound) / deviation;
  EXPECT_LT(std::log2(names * std::erfc(z / std::sqrt(2)) / 2), -128);
}

TEST_F(PrivateTest, CsvColumnsAreThoseThatAPersonNames) {
  const std::string file = Write("log.csv", "who,what,taken\nanna,soap,1\nbert,tea,0\n");
  const auto found =
      Find({.records = RecordsOfFiles({file}), .format = Format::kCsv, .fields = {"what", "taken"}},
           0, silent_);
  ASSERT_EQ(found->sample().columns.size(), 2u);
  EXPECT_EQ(found->sample().rows, 2u);
  // A file without a header begins with a record, which nothing may show.
  const auto bare = PrivateFindings::Make(
      {.records = RecordsOfFiles({Write("bare.csv", "anna,soap,1\nbert,tea,0\n")}),
       .format = Format::kCsv,
       .fields = {"what", "taken"}},
      0, silent_);
  ASSERT_FALSE(bare);
  EXPECT_THAT(bare.error().message, HasSubstr("first line is no header that names what, taken"));
  EXPECT_THAT(bare.error().message, Not(HasSubstr("anna")));
}

// Expects proposals alike: features of the same kind, with rows within a quarter and what noise
// makes of small tables (a list's values are counted with more noise), and a period within 5 %.
void ExpectAlike(const config::Config& is, const config::Config& raw, double deviation) {
  std::map<std::string, std::pair<config::Feature::Kind, double>> features;
  for (const auto& feature : is.features)
    features[feature.name] = {feature.kind, static_cast<double>(feature.buckets)};
  EXPECT_EQ(features.size(), raw.features.size());
  for (const auto& feature : raw.features) {
    ASSERT_TRUE(features.contains(feature.name)) << feature.name;
    EXPECT_EQ(features[feature.name].first, feature.kind) << feature.name;
    const auto rows = static_cast<double>(feature.buckets);
    const bool set = feature.kind == config::Feature::Kind::kMultiHot;
    EXPECT_NEAR(features[feature.name].second, rows, 0.25 * rows + (set ? 16 : 4) * deviation)
        << feature.name;
  }
  const auto batch = static_cast<double>(raw.learners[0].participation.batch);
  EXPECT_NEAR(static_cast<double>(is.learners[0].participation.batch), batch, 0.05 * batch);
  EXPECT_EQ(is.learners[0].model.kind, raw.learners[0].model.kind);
  EXPECT_EQ(is.learners[0].participation.max_participations,
            raw.learners[0].participation.max_participations);
}

TEST_F(PrivateTest, AtEpsilonOneTheProposalIsTheRawOne) {
  const Asked asked{.epsilon = 8, .delta = 1e-6, .unit = "event", .mode = "once"};
  const double noise_multiplier = wiring::InspectionNoise(1, 1e-6);
  const std::string json = Write("app.jsonl", TextOf(AppLog(11, 30'000)));
  std::string shop = test::ShopAsCsv(12, 40'000);
  const std::string csv = Write("shop.csv", shop);
  const PrivateLook looks[] = {
      {.records = RecordsOfFiles({json})},
      {.records = RecordsOfFiles({csv}),
       .format = Format::kCsv,
       .fields = {"when", "who", "shelf", "price", "hour", "tags", "seen", "taken"}}};
  const Named kNamed[] = {{},
                          {.label = "taken",
                           .user = "who",
                           .item = "shelf",
                           .label_values = {{"no", "0"}, {"yes", "1"}}}};
  for (size_t i = 0; i < 2; ++i) {
    const auto sample = ReadSample(looks[i].records, {});
    ASSERT_TRUE(sample) << sample.error().message;
    const auto raw = Propose(*sample, FindRoles(*sample, kNamed[i]), asked);
    ASSERT_TRUE(raw) << raw.error().message;
    for (uint8_t key = 1; key <= 4; ++key) {
      SCOPED_TRACE(fmt::format("log {}, noise {}", i, key));
      noise::FixedNoise noise(key);
      const auto found = Find(looks[i], noise_multiplier, noise);
      const Roles roles =
          FindRoles(found->sample(), found->profiles(), found->evidence(), kNamed[i]);
      ASSERT_EQ(WhyNothingToLearn(roles), "");
      const auto proposal = Propose(found->sample(), roles, found->evidence(), asked);
      ASSERT_TRUE(proposal) << proposal.error().message;
      ExpectAlike(proposal->config, raw->config, found->deviation());
      const auto trial = found->Try(proposal->config, roles);
      ASSERT_TRUE(trial) << trial.error().message;
      const auto twin = TryOut(*sample, raw->config);
      ASSERT_TRUE(twin);
      EXPECT_NEAR(trial->label_rate(), twin->label_rate(), 0.02);
      EXPECT_EQ(trial->bad(), 0u);
      ASSERT_TRUE(trial->noised_days);
      EXPECT_GT(trial->noised_days->days, 0u);
    }
  }
}

TEST_F(PrivateTest, OfUsersItIsTheRawOneButForNumbersOfFewRecords) {
  const std::string json = Write("app.jsonl", TextOf(AppLog(11, 60'000)));
  const Asked asked{.epsilon = 8, .delta = 1e-6, .unit = "user", .mode = "once"};
  const Named named{.label = "/clicked", .user = "/uid"};
  noise::FixedNoise noise(2);
  const auto found = Find({.records = RecordsOfFiles({json}),
                           .fields = {"/uid", "/clicked", "/at", "/where/hour"},
                           .unit = privacy::Unit::kUser,
                           .user = "/uid",
                           .user_records = 20},
                          wiring::InspectionNoise(4, 1e-6), noise);
  const Roles roles = FindRoles(found->sample(), found->profiles(), found->evidence(), named);
  ASSERT_EQ(WhyNothingToLearn(roles), "");
  ASSERT_TRUE(roles.user);
  const auto proposal = Propose(found->sample(), roles, found->evidence(), asked);
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_EQ(proposal->config.learners[0].privacy.unit, privacy::Unit::kUser);
  const auto again = Propose(found->sample(), roles, found->evidence(), asked);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->yaml, proposal->yaml) << "users are counted once, and told again";
}

// A shop's records with some users, the first of whom has a share of them.
std::string ShopOfUsers(size_t rows, size_t users, size_t heavy_percent) {
  std::mt19937_64 random(5);
  std::string text = "user,shelf,page,click\n";
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t user = random() % 100 < heavy_percent ? 0 : 1 + random() % users;
    text += fmt::format("u{},s{},{},{}\n", user, random() % 12, random() % 9,
                        random() % 10 < 3 ? 1 : 0);
  }
  return text;
}

class NoisyShopTest : public PrivateTest {
 protected:
  Roles RolesOf(const std::string& text, privacy::Unit unit, double epsilon, uint8_t key) {
    noise::FixedNoise noise(key);
    const auto found = Find({.records = RecordsOfFiles({Write("shop.csv", text)}),
                             .format = Format::kCsv,
                             .fields = {"user", "shelf", "page", "click"},
                             .unit = unit,
                             .user = "user",
                             .user_records = 20},
                            wiring::InspectionNoise(epsilon, 1e-6), noise);
    return FindRoles(found->sample(), found->profiles(), found->evidence(),
                     {.label = "click", .user = "user", .item = "shelf"});
  }
};

// The largest of a thousand noised counts is large by noise alone.
TEST_F(NoisyShopTest, AHeavyUserIsToldOfBeyondTheNoise) {
  const std::string even = ShopOfUsers(30'000, 1500, 0), heavy = ShopOfUsers(30'000, 1500, 20);
  for (uint8_t key = 1; key <= 8; ++key) {
    SCOPED_TRACE(fmt::format("noise {}", key));
    const auto of_users = RolesOf(even, privacy::Unit::kUser, 1, key).warnings;
    EXPECT_THAT(of_users, Not(Contains(HasSubstr("one user has"))));
    const auto of_events = RolesOf(even, privacy::Unit::kEvent, 0.05, key).warnings;
    EXPECT_THAT(of_events, Not(Contains(HasSubstr("one user has"))));
    const auto of_heavy = RolesOf(heavy, privacy::Unit::kEvent, 1, key).warnings;
    EXPECT_THAT(of_heavy, Contains(HasSubstr("one user has at least 1")));
    const auto of_bounded = RolesOf(heavy, privacy::Unit::kUser, 8, key).warnings;
    EXPECT_THAT(of_bounded, Not(Contains(HasSubstr("one user has")))) << "20 of its records count";
  }
}

// The counts of users are paid for once, and serve the second model too.
TEST_F(NoisyShopTest, UsersAreCountedOnceForBothModels) {
  std::string items;
  for (int i = 0; i < 12; ++i) items += fmt::format("s{}\n", i);
  noise::FixedNoise noise(1);
  const auto found =
      Find({.records = RecordsOfFiles({Write("shop.csv", ShopOfUsers(30'000, 1500, 0))}),
            .format = Format::kCsv,
            .fields = {"user", "shelf", "page", "click"},
            .unit = privacy::Unit::kUser,
            .user = "user",
            .user_records = 20},
           wiring::InspectionNoise(8, 1e-6), noise);
  const Roles roles = FindRoles(found->sample(), found->profiles(), found->evidence(),
                                {.label = "click", .user = "user", .item = "shelf"});
  const auto proposal = Propose(found->sample(), roles, found->evidence(),
                                {.epsilon = 8,
                                 .delta = 1e-6,
                                 .unit = "user",
                                 .mode = "once",
                                 .items = Write("items.txt", items)});
  ASSERT_TRUE(proposal) << proposal.error().message;
  ASSERT_EQ(proposal->config.learners.size(), 2u);
  EXPECT_EQ(proposal->config.learners[0].participation.max_participations,
            proposal->config.learners[1].participation.max_participations);
}

// A label that was named stays one where noise hides its values, and a sentence says so.
TEST_F(NoisyShopTest, FieldsThatTheNoiseHidesAreNamed) {
  const std::string few = ShopOfUsers(1200, 299, 0);
  for (uint8_t key = 1; key <= 8; ++key) {
    SCOPED_TRACE(fmt::format("noise {}", key));
    const Roles hidden = RolesOf(few, privacy::Unit::kUser, 1, key);
    ASSERT_TRUE(hidden.label);
    EXPECT_EQ(hidden.label->reason, "it is given, and taken for 0 or 1");
    EXPECT_FALSE(hidden.are_meetings());
    EXPECT_THAT(hidden.warnings, Contains(HasSubstr("the noise hides the values of \"click\"")));
    EXPECT_THAT(hidden.warnings,
                Contains(HasSubstr("the noise hides these fields: \"user\", \"shelf\", \"page\"")));
    EXPECT_THAT(hidden.left_out, Contains(testing::Pair(2u, "the noise hides it")));
    const Roles seen = RolesOf(few, privacy::Unit::kEvent, 8, key);
    ASSERT_TRUE(seen.label);
    EXPECT_EQ(seen.label->reason, "it is 0 or 1");
    EXPECT_THAT(seen.warnings, Not(Contains(HasSubstr("the noise hides"))));
  }
}

TEST_F(PrivateTest, LittleDataSaysThatNothingStandsOut) {
  const std::string file = Write("few", TextOf(AppLog(13, 50)));
  noise::FixedNoise noise(3);
  const auto found =
      Find({.records = RecordsOfFiles({file})}, wiring::InspectionNoise(1, 1e-6), noise);
  EXPECT_TRUE(found->sample().columns.empty());
  const Roles roles = FindRoles(found->sample(), found->profiles(), found->evidence(), {});
  EXPECT_NE(WhyNothingToLearn(roles), "");
}

}  // namespace
}  // namespace tacit::inspect
