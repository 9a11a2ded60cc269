// Tests that a proposal loads, for any records, and that its codec reads them.
#include "inspect/proposal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <regex>

#include "inspect/report.h"
#include "inspect/trial.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/inspect/logs.h"
#include "wiring/assembly.h"

namespace tacit::inspect {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Records of a schema that is drawn at random: fields of all kinds under names of all kinds.
class RandomLog {
 public:
  explicit RandomLog(uint64_t seed) : random_(seed) {
    format_ = static_cast<int>(Below(4));
    const size_t fields = 1 + Below(format_ == 3 ? 12 : 20);
    for (size_t i = 0; i < fields; ++i)
      fields_.push_back({.name = Name(), .kind = Below(kKinds), .salt = Below(1 << 20)});
    label_ = Below(fields + 1);
    label_kind_ = Below(format_ == 3 ? 1 : 4);
    label_name_ = Name();
  }

  std::string Text(size_t records) {
    std::string text = format_ == 2 ? Header() : "";
    for (size_t i = 0; i < records; ++i) text += Record(i) + '\n';
    return text;
  }
  size_t Below(uint64_t end) { return random_() % end; }

 private:
  static constexpr size_t kKinds = 14;
  struct Field {
    std::string name;
    size_t kind = 0, salt = 0;
  };

  std::string Name() {
    static constexpr const char* kPieces[] = {
        "a",     "User", "id", "_",     " ",     ".",        "/",   "~",  "#", ": ",
        "é",     "日",   "'",  "\"",    "\\",    "{",        "}",   "- ", "*", "?",
        "&x",    "!",    "%",  "null",  "no",    "1e3",      "|",   ",",  ";", "@",
        "price", "=",    "\t", "token", "label", "features", "[0]", "y"};
    while (true) {
      std::string name;
      for (size_t i = 1 + Below(4); i > 0; --i) name += kPieces[Below(std::size(kPieces))];
      // A header of tabs, or of numbers, is none.
      if (format_ >= 2 && name.find_first_of("\t1") != std::string::npos) continue;
      if (names_.insert(name).second) return name;
    }
  }

  // The value of a field, as it is written in JSON; "" for none.
  std::string Value(const Field& field, size_t i) {
    const auto word = [&](uint64_t end) {
      return fmt::format("\"w{}\"", (Below(end) + field.salt) % 100'003);
    };
    switch (field.kind) {
      case 0:
        return fmt::format("{}", Below(1 + field.salt % 50));
      case 1:
        return fmt::format("{}", Below(1'000'000));
      case 2:
        return fmt::format("{:.3f}", static_cast<double>(Below(1'000'000)) / 777);
      case 3:
        return word(1 + field.salt % 300);
      case 4:
        return Below(2) == 0 ? "true" : "false";
      case 5:
        return fmt::format("\"{}\"", Below(400));  // a number in quotes
      case 6:
        return Below(3) == 0 ? word(5) : "";
      case 7:
        return fmt::format("{}", 1'700'000'000 + i * 60);  // a time
      case 8:
        return format_ < 2 ? fmt::format("[{},{}]", word(9), word(9))
                           : fmt::format("\"w{}|w{}\"", Below(9), Below(9));
      case 9:
        return format_ >= 2 || Below(2) == 0 ? fmt::format("{}", Below(9)) : word(9);  // both
      case 10:
        return format_ < 2 ? fmt::format("{{\"x\":{},\"y/z\":{}}}", Below(9), word(9)) : word(40);
      case 11:
        return fmt::format("\"u{}-{}\"", i, field.salt);  // each record has its own
      case 12:
        return "42";
      default:
        return fmt::format("-{}", Below(5000));
    }
  }

  std::string Label(size_t i) {
    const bool yes = i == 0 || (i > 1 && Below(4) == 0);
    switch (label_kind_) {
      case 0:
        return yes ? "1" : "0";
      case 1:
        return yes ? "true" : "false";
      case 2:
        return yes ? "\"bought\"" : "\"seen\"";
      default:
        return fmt::format("{}", 1 + (i + Below(2)) % 5);
    }
  }

  std::string Header() {
    std::string header;
    for (size_t k = 0; k <= fields_.size(); ++k) {
      const std::string& name = k == label_ ? label_name_ : fields_[k - (k > label_)].name;
      std::string quoted = "\"";
      for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
      header += (k == 0 ? "" : ",") + quoted + '"';
    }
    return header + '\n';
  }

  std::string Record(size_t i) {
    std::string record;
    if (format_ == 3) {  // Criteo's: numbers, then texts
      record = Label(i);
      for (size_t k = 0; k < fields_.size(); ++k)
        record += '\t' + (k * 2 < fields_.size() ? fmt::format("{}", Below(90))
                                                 : fmt::format("x{}", Below(90)));
      return record;
    }
    for (size_t k = 0; k <= fields_.size(); ++k) {
      const bool label = k == label_;
      const Field* field = label ? nullptr : &fields_[k - (k > label_)];
      std::string value = label ? Label(i) : Value(*field, i);
      if (format_ == 2) {
        record += (k == 0 ? "" : ",") + value;
        continue;
      }
      if (value.empty()) continue;
      record += record.empty() ? "" : ",";
      record += boost::json::serialize(boost::json::value(label ? label_name_ : field->name)) +
                ':' + value;
    }
    return format_ == 2 ? record : '{' + record + '}';
  }

  std::mt19937_64 random_;
  int format_ = 0;  // 0, 1: JSON, 2: lines of values, 3: Criteo's
  std::vector<Field> fields_;
  std::set<std::string> names_;
  std::string label_name_;
  size_t label_ = 0, label_kind_ = 0;
};

Asked RandomlyAsked(RandomLog* log) {
  Asked asked;
  static constexpr const char* kModes[] = {"once", "once", "poisson", "allocate"};
  if (log->Below(2) == 0) asked.unit = "event";
  if (log->Below(2) == 0) asked.epsilon = 0.1 * static_cast<double>(1 + log->Below(100));
  if (log->Below(2) == 0) asked.delta = 1e-7;
  if (log->Below(2) == 0) asked.mode = kModes[log->Below(4)];
  return asked;
}

// A record that the proposal's codec cannot read would be a dead letter for ever; these are all
// good.
TEST(ProposalTest, WhateverTheSchemaTheProposalLoadsAndReadsItsRecords) {
  size_t proposed = 0, with_features = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const test::TempDir dir;
    RandomLog log(seed);
    test::WriteFile(dir / "a log*.txt", log.Text(150 + log.Below(150)));
    const auto sample = ReadSample({dir / "a log*.txt"}, {});
    ASSERT_TRUE(sample) << sample.error().message;
    ASSERT_EQ(sample->complaints.total(), 0u) << sample->complaints.List()[0].reason;
    const Roles roles = FindRoles(*sample);
    if (!WhyNothingToLearn(roles).empty()) continue;
    const auto proposal = Propose(*sample, roles, RandomlyAsked(&log));
    ASSERT_TRUE(proposal) << proposal.error().message;
    ++proposed;
    with_features += roles.features.size() > 2 ? 1 : 0;
    // The text alone is what is handed on: it is refused where keys are open, and loads with them.
    const auto bare = config::Parse(proposal->yaml, "bare", {});
    EXPECT_EQ(bare.has_value(), proposal->open_keys.empty()) << proposal->yaml;
    const auto config = config::Parse(proposal->yaml, "filled", proposal->filled);
    ASSERT_TRUE(config) << config.error().message << '\n' << proposal->yaml;
    if (config->learners[0].model.recommends()) continue;  // its catalogue is not there
    const auto assembly = wiring::Assemble(*config);
    ASSERT_TRUE(assembly) << assembly.error().message << '\n' << proposal->yaml;
    const auto trial = TryOut(*sample, *config);
    ASSERT_TRUE(trial) << trial.error().message << '\n' << proposal->yaml;
    ASSERT_EQ(trial->bad(), 0u) << trial->complaints.List()[0].reason << '\n' << proposal->yaml;
    EXPECT_EQ(trial->good, sample->lines);
    EXPECT_GT(trial->label_rate(), 0);
    EXPECT_LT(trial->label_rate(), 1);
  }
  EXPECT_GT(proposed, 250u) << "nearly every log can be learnt from";
  EXPECT_GT(with_features, 200u);
}

// Tables of a hundred million rows do not fit into the default; the proposal asks for what does.
TEST(ProposalTest, MemoryGrowsUntilTheLearnersFit) {
  const test::TempDir dir;
  std::mt19937_64 random(4);
  std::string text = "click,size";
  for (int c = 0; c < 120; ++c) text += fmt::format(",c{}", c);
  text += '\n';
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format("{},{}", i % 3 == 0 ? 1 : 0, random() % 5000);
    for (int c = 0; c < 120; ++c) text += fmt::format(",v{}", random() % 1000);
    text += '\n';
  }
  test::WriteFile(dir / "wide.csv", text);
  auto sample = ReadSample({dir / "wide.csv"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  const Asked asked{.epsilon = 8, .delta = 1e-7, .unit = "event", .mode = "once"};
  const auto small = Propose(*sample, FindRoles(*sample), asked);
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->config.memory_total_bytes, uint64_t{2} << 30);
  sample->lines_in_all = 9e8;
  const auto large = Propose(*sample, FindRoles(*sample), asked);
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_GT(large->config.memory_total_bytes, uint64_t{2} << 30);
  EXPECT_TRUE(wiring::Assemble(large->config));
}

// A log with users, items and other columns has models of its labels and of the next item.
class TwoModelsTest : public testing::Test {
 protected:
  TwoModelsTest() {
    std::string items;
    for (int sku = 7000; sku < 7100; ++sku) items += fmt::format("{}\n", sku);
    test::WriteFile(dir_ / "items.dat", items);
  }
  void Read(const std::string& text) {
    test::WriteFile(dir_ / "shop.log", text);
    auto sample = ReadSample({dir_ / "shop.log"}, {});
    ASSERT_TRUE(sample) << sample.error().message;
    sample_ = *std::move(sample);
    roles_ = FindRoles(sample_);
  }
  Proposal Make(const Asked& asked) {
    auto proposal = Propose(sample_, roles_, asked);
    EXPECT_TRUE(proposal) << proposal.error().message;
    return proposal ? *std::move(proposal) : Proposal();
  }

  test::TempDir dir_;
  Sample sample_;
  Roles roles_;
};

TEST_F(TwoModelsTest, BothAreProposedWhereTheItemsAreNamed) {
  const std::string csv = test::DatedShopAsCsv(6, 3000);
  for (const std::string& text : {csv, test::DatedShopAsJson(csv)}) {
    Read(text);
    const Proposal proposal = Make(
        {.epsilon = 8, .delta = 1e-6, .unit = "user", .mode = "once", .items = dir_ / "items.dat"});
    EXPECT_THAT(proposal.next_item, HasSubstr("is proposed beside the model of labels"));
    ASSERT_EQ(proposal.config.learners.size(), 2u) << proposal.yaml;
    EXPECT_EQ(proposal.config.learners[0].model.kind, config::ModelKind::kLinear);
    EXPECT_EQ(proposal.config.learners[1].model.kind, config::ModelKind::kTransitions);
    EXPECT_THAT(proposal.yaml, HasSubstr("Records of label 1"));
    EXPECT_THAT(proposal.yaml, HasSubstr("tell of a user adds up"));
    EXPECT_THAT(proposal.yaml, HasSubstr("    timestamp_unit: datetime\n"));
    EXPECT_THAT(proposal.yaml, HasSubstr("    timestamp_zone: UTC\n"));
    const auto trial = TryOut(sample_, proposal.config);
    ASSERT_TRUE(trial) << trial.error().message;
    EXPECT_EQ(trial->bad(), 0u) << trial->complaints.List()[0].reason;
    // Each learner has keys of its own for a person to fill in.
    const Proposal open = Make({.items = dir_ / "items.dat"});
    EXPECT_THAT(
        open.filled,
        ElementsAre("learners.0.privacy.unit=event", "learners.0.privacy.epsilon=1",
                    "learners.0.privacy.delta=1e-06", "learners.0.participation.mode=once",
                    "learners.1.privacy.unit=user", "learners.1.privacy.epsilon=1",
                    "learners.1.privacy.delta=1e-06", "learners.1.participation.mode=once"));
  }
}

TEST_F(TwoModelsTest, ElseASentenceSaysWhyNot) {
  Read(test::DatedShopAsCsv(6, 3000));
  const std::string items = dir_ / "items.dat";
  const auto why = [&](const Asked& asked) {
    const Proposal proposal = Make(asked);
    EXPECT_EQ(proposal.config.learners.size(), 1u);
    EXPECT_THAT(proposal.yaml, HasSubstr("# Next items: " + proposal.next_item.substr(0, 30)));
    return proposal.next_item;
  };
  EXPECT_THAT(why({}), HasSubstr("it needs the public list of items, --items FILE"));
  EXPECT_THAT(why({.unit = "event", .items = items}), HasSubstr("and --unit is event"));
  EXPECT_THAT(why({.mode = "poisson", .items = items}), HasSubstr("and --mode is poisson"));
  roles_.item.reset();
  EXPECT_THAT(why({.items = items}), HasSubstr("--items is not used: no field of these records "
                                               "names an item"));
  EXPECT_EQ(Make({}).next_item, "");
}

// Lines are asked about by the names that the configuration has, without the files.
TEST_F(TwoModelsTest, AProposalForCsvNamesItsColumns) {
  Read(test::DatedShopAsCsv(6, 300));
  EXPECT_THAT(Make({}).config.source.csv.columns,
              ElementsAre("at", "customer", "sku", "shelf", "price", "clicked"));
  EXPECT_TRUE(Make({}).config.source.csv.header);
  // Some programs write a column without a name for their row numbers.
  std::string text = test::DatedShopAsCsv(6, 300);
  Read(text.replace(0, 2, ""));
  EXPECT_THAT(Make({}).config.source.csv.columns,
              ElementsAre("", "customer", "sku", "shelf", "price", "clicked"));
}

class ShopProposalTest : public testing::Test {
 protected:
  ShopProposalTest() {
    test::WriteFile(dir_ / "shop.csv", test::ShopAsCsv(2, 3000));
    auto sample = ReadSample({dir_ / "shop.csv"}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    sample_ = *std::move(sample);
    roles_ = FindRoles(sample_);
  }
  Proposal Make(const Asked& asked) {
    auto proposal = Propose(sample_, roles_, asked);
    EXPECT_TRUE(proposal) << proposal.error().message;
    return proposal ? *std::move(proposal) : Proposal();
  }

  test::TempDir dir_;
  Sample sample_;
  Roles roles_;
};

TEST_F(ShopProposalTest, PrivacyStaysOpenUntilItIsGiven) {
  const Proposal open = Make({});
  EXPECT_THAT(open.open_keys,
              ElementsAre("learners.0.privacy.unit", "learners.0.privacy.epsilon",
                          "learners.0.privacy.delta", "learners.0.participation.mode"));
  const auto refused = config::Parse(open.yaml, "shop.yaml", {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("learners[0].privacy.unit: has no value; expected one of event, user"));
  const auto second = config::Parse(open.yaml, "shop.yaml", {"learners.0.privacy.unit=event"});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("learners[0].privacy.epsilon: has no value"));
  const Proposal given = Make({.epsilon = 3, .delta = 1e-6, .unit = "event", .mode = "once"});
  EXPECT_TRUE(given.open_keys.empty());
  EXPECT_TRUE(config::Parse(given.yaml, "shop.yaml", {}));
}

// The words of a label are asked for where none of them is known to be a success.
TEST(ProposalTest, LabelValuesStayOpenUntilTheyAreGiven) {
  const test::TempDir dir;
  std::string text = "state,colour\n";
  for (int i = 0; i < 900; ++i)
    text += fmt::format("{},c{}\n", i % 4 == 0 ? "went: \"home\"" : "stayed", i % 9);
  test::WriteFile(dir / "words.csv", text);
  const auto sample = ReadSample({dir / "words.csv"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  const Roles roles = FindRoles(*sample);
  const auto proposal =
      Propose(*sample, roles, {.epsilon = 3, .delta = 1e-6, .unit = "event", .mode = "once"});
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_THAT(proposal->open_keys, ElementsAre("source.csv.label_values"));
  EXPECT_THAT(proposal->yaml,
              HasSubstr("The label, GUESSED: by its values. Its rule: its values are \"stayed\""));
  const auto refused = config::Parse(proposal->yaml, "words.yaml", {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("source.csv.label_values.stayed: has no value; expected 0 or 1"));
  EXPECT_TRUE(config::Parse(proposal->yaml, "words.yaml", proposal->filled));
  const auto trial = TryOut(*sample, proposal->config);
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->bad(), 0u);
  const std::string report = ReportText(*sample, roles, *trial);
  EXPECT_THAT(report, HasSubstr("'state', GUESSED: by its values; its values are \"stayed\" in 675 "
                                "records, \"went: \\\"home\\\"\" in 225"));
  EXPECT_EQ(ReportJson(*sample, roles, *trial).at("label").at("guessed"), true);
}

// Records of a user who is none lose their user, in the plain form too, which is then written out.
TEST(ProposalTest, APlaceholderIsMissingInTheProposal) {
  const test::TempDir dir;
  std::string text;
  for (int i = 0; i < 900; ++i)
    text += fmt::format(R"({{"label":{},"user":"{}","features":{{"c":"x{}"}}}})"
                        "\n",
                        i % 3 / 2, i % 4 == 0 ? "unknown" : fmt::format("u{}", i), i % 7);
  test::WriteFile(dir / "plain.jsonl", text);
  const auto sample = ReadSample({dir / "plain.jsonl"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  const auto proposal = Propose(*sample, FindRoles(*sample), {});
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_THAT(proposal->config.source.json.missing, ElementsAre("unknown"));
  const auto trial = TryOut(*sample, proposal->config);
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->good, 900u);
}

// A hundred users are in each of four periods, with half of the records; the others come once. The
// header is an offset, so that periods have 10,100: the first has 10,099 records.
TEST(ProposalTest, AnAllowanceHasItsPriceInNoiseAndInRecords) {
  const test::TempDir dir;
  std::mt19937_64 random(9);
  std::string text = "user,colour,clicked\n";
  for (int i = 0; i < 40'000; ++i)
    text += fmt::format("{},c{},{}\n",
                        i % 2 == 0 ? fmt::format("a{}", i / 2 % 100) : fmt::format("b{}", i),
                        random() % 9, random() % 3 == 0 ? 1 : 0);
  test::WriteFile(dir / "users.csv", text);
  const auto sample = ReadSample({dir / "users.csv"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  const auto proposal = Propose(*sample, FindRoles(*sample),
                                {.epsilon = 8, .delta = 1e-6, .unit = "user", .mode = "once"});
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_EQ(proposal->config.learners[0].participation.max_participations, 1u);
  const std::string yaml = std::regex_replace(proposal->yaml, std::regex("\n +# "), " ");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      yaml, found,
      std::regex("noise at epsilon 8, and the share of records that is left out: 1: ([0-9.]+), "
                 "37\\.4 %; 2: ([0-9.]+), 24\\.8 %; 4: ([0-9.]+), 0\\.0 %\\.")))
      << yaml;
  EXPECT_LT(std::stod(found[1]), std::stod(found[2]));
  EXPECT_LT(std::stod(found[2]), std::stod(found[3]));
}

TEST_F(ShopProposalTest, ModesThatSampleHaveTheNetworkAndTheirSteps) {
  for (const char* mode : {"poisson", "allocate"}) {
    const Proposal proposal = Make({.epsilon = 8, .delta = 1e-6, .unit = "event", .mode = mode});
    const config::Learner& learner = proposal.config.learners[0];
    EXPECT_EQ(learner.model.kind, config::ModelKind::kPctr);
    EXPECT_EQ(learner.participation.period, 3000u);
    EXPECT_EQ(learner.participation.steps_per_period, 2u);
    EXPECT_EQ(learner.participation.batch, 1500u);
  }
}

// A linear model needs a column of one value; sets alone are the network's.
TEST(ProposalTest, SetsAloneHaveTheNetwork) {
  const test::TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{{\"click\":{},\"tags\":[\"a{}\",\"b{}\"]}}\n", i % 3 == 0 ? 1 : 0, i % 5,
                        i % 7);
  test::WriteFile(dir / "sets.jsonl", text);
  const auto sample = ReadSample({dir / "sets.jsonl"}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  const auto proposal = Propose(*sample, FindRoles(*sample), {});
  ASSERT_TRUE(proposal) << proposal.error().message;
  EXPECT_EQ(proposal->config.learners[0].model.kind, config::ModelKind::kPctr);
  EXPECT_EQ(proposal->config.learners[0].participation.batch, 2048u);
}

// A file a day of 180 records: 56 of them have the 10,000 of a first period.
TEST(ProposalTest, FilesOfFewRecordsMakeOnePeriodTogether) {
  const test::TempDir dir;
  const auto propose = [&](int files, int records, const Asked& asked) {
    std::vector<std::string> paths;
    for (int file = 0; file < files; ++file) {
      std::string text = "click,shelf\n";
      for (int i = 1; i < records; ++i)
        text += fmt::format("{},s{}\n", i % 3 == 0 ? 1 : 0, (i + file) % 7);
      paths.push_back(dir / fmt::format("{}-{}.csv", records, file));
      test::WriteFile(paths.back(), text);
    }
    const auto sample = ReadSample(paths, {});
    EXPECT_TRUE(sample) << sample.error().message;
    auto proposal = Propose(*sample, FindRoles(*sample), asked);
    EXPECT_TRUE(proposal) << proposal.error().message;
    return *std::move(proposal);
  };
  const auto files_of = [](const Proposal& proposal) {
    return proposal.config.learners[0].participation.step_files;
  };
  const Asked once{.epsilon = 8, .delta = 1e-6, .unit = "event", .mode = "once"};
  const Proposal small = propose(5, 180, once);
  EXPECT_NEAR(files_of(small), 56, 1);
  EXPECT_THAT(small.yaml, HasSubstr("A file has some 1"));
  EXPECT_THAT(small.noise,
              AllOf(HasSubstr("at epsilon 8, "), HasSubstr("a period has at most 10,")));
  EXPECT_EQ(files_of(propose(2, 12'000, once)), 1u) << "each is long enough";
  EXPECT_EQ(files_of(propose(1, 180, once)), 1u) << "there is no other file";
  const Asked held{.epsilon = 8, .delta = 1e-6, .unit = "event", .mode = "poisson"};
  EXPECT_EQ(files_of(propose(5, 190, held)), 1u);
}

// tacitd counts headers as offsets: no last record is a period of its own, and no batch ends a step
// of two files before they end.
TEST(ProposalTest, PeriodsHaveRoomForHeaders) {
  const test::TempDir dir;
  test::WriteFile(dir / "items.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
  const auto propose = [&](size_t files, size_t records) {
    std::vector<std::string> paths;
    for (size_t file = 0; file < files; ++file) {
      paths.push_back(dir / fmt::format("{}-{}.csv", records, file));
      // Each user comes in two files that follow each other.
      std::string text = "user,item,shelf,clicked\n";
      for (size_t i = 0; i < records; ++i)
        text += fmt::format("u{},{},s{},{}\n", 1000 * (file / 2) + i * 7 % 1000, 1 + i % 12,
                            (i + file) % 9, i % 5 == 0 ? 1 : 0);
      test::WriteFile(paths.back(), text);
    }
    const auto sample = ReadSample(paths, {});
    EXPECT_TRUE(sample) << sample.error().message;
    auto proposal = Propose(
        *sample, FindRoles(*sample),
        {.epsilon = 8, .delta = 1e-6, .unit = "user", .mode = "once", .items = dir / "items.txt"});
    EXPECT_TRUE(proposal) << proposal.error().message;
    return *std::move(proposal);
  };
  // The records of each step.
  const auto steps_of = [](const Proposal& proposal, size_t learner, size_t files, double records) {
    const config::Participation& p = proposal.config.learners.at(learner).participation;
    auto starts = StepStarts(std::vector<double>(files, records + 1), p.batch, p.step_files);
    const auto all = static_cast<uint64_t>(records + 1) * files;
    if (starts.back() < all) starts.push_back(all);
    std::vector<uint64_t> steps;
    for (size_t i = 1; i < starts.size(); ++i) steps.push_back(starts[i] - starts[i - 1]);
    return steps;
  };
  const Proposal shop = propose(1, 20'000);
  EXPECT_THAT(steps_of(shop, 0, 1, 20'000), ElementsAre(10'100u, 9'901u));
  EXPECT_THAT(steps_of(shop, 1, 1, 20'000), ElementsAre(20'001u));
  const Proposal four = propose(4, 5000);
  EXPECT_EQ(four.config.learners[0].participation.step_files, 2u);
  EXPECT_THAT(steps_of(four, 0, 4, 5000), ElementsAre(10'002u, 10'002u));
  EXPECT_EQ(four.config.learners[0].participation.max_participations, 1u);
  EXPECT_THAT(four.yaml, HasSubstr("No user of these records comes in a second period"));
}

TEST_F(ShopProposalTest, AUserMustBeNamedWhereOneIsTheUnit) {
  const auto refused = Propose(sample_, roles_, {.unit = "user"});
  if (roles_.user) {
    EXPECT_TRUE(refused) << refused.error().message;
  } else {
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("names a user"));
  }
}

// Every value has its reason, or its price, in a comment before it or behind it.
TEST_F(ShopProposalTest, ValuesHaveTheirReasons) {
  const std::string yaml = Make({}).yaml;
  for (const char* words :
       {"# The label, GUESSED: by its values; it might be \"hour\"", "has two rows",
        "best click model here", "follows from epsilon", "The price, as noise",
        "epsilon 1: ", "epsilon 8: ", "well below 1 / 3,000"})
    EXPECT_THAT(yaml, HasSubstr(words));
  EXPECT_THAT(yaml, Not(HasSubstr("epsilon: 1")));
}

TEST_F(ShopProposalTest, TheReportSaysFirstThatItIsRaw) {
  const auto trial = TryOut(sample_, Make({}).config);
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(ReportText(sample_, roles_, *trial).find("tacit inspect looks at RAW records"), 0u);
  const boost::json::object report = ReportJson(sample_, roles_, *trial);
  EXPECT_EQ(report.begin()->key(), "raw");
  EXPECT_EQ(report.at("label").at("field"), "taken");
  EXPECT_EQ(report.at("days").at("days"), 28);
  EXPECT_THAT(ReportText(sample_, roles_, *trial), Not(HasSubstr("shelf 7")))
      << "values are not shown";
}

}  // namespace
}  // namespace tacit::inspect
