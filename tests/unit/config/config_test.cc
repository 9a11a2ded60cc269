#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/dump.h"
#include "config/reader.h"
#include "config/tree.h"
#include "sample.h"
#include "support/temp_dir.h"

namespace tacit::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Config, SampleIsReadWithItsDefaults) {
  const Result<Config> config = Parse(kSample, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->source.kind, Source::Kind::kGenerator);
  EXPECT_EQ(config->source.generator.rows_per_day, 150000u);
  ASSERT_EQ(config->features.size(), 3u);
  EXPECT_EQ(config->features[0].transform, "signed_log1p");
  EXPECT_EQ(config->features[1].buckets, 1000u);
  EXPECT_EQ(config->features[2].kind, Feature::Kind::kMultiHot);
  EXPECT_EQ(config->features[2].max_values, 4u);
  ASSERT_EQ(config->learners.size(), 1u);
  const Learner& learner = config->learners[0];
  EXPECT_THAT(learner.model.hidden, ElementsAre(128, 64));
  EXPECT_EQ(learner.mechanism.threshold, 10);
  EXPECT_EQ(learner.mechanism.sigma_ratio, 5);
  EXPECT_FALSE(learner.mechanism.noise_multiplier.has_value());
  EXPECT_EQ(learner.participation.batch, 4096u);
  EXPECT_EQ(learner.privacy.delta, 1e-7);
  EXPECT_EQ(learner.optimizer.kind, Optimizer::Kind::kAdam);
  EXPECT_EQ(config->store.witness, "/tmp/tacit/store.witness");
  EXPECT_EQ(config->dead_letters.path, "/tmp/tacit/store.dead-letters.jsonl");
  EXPECT_EQ(config->memory_total_bytes, 2ull << 30);
}

// Every kind of key: what is written where it is not used is checked, and changes nothing.
TEST(Config, AKeyThatIsNotUsedKeepsItsDefault) {
  struct Values {
    std::string text = "a", choice = "one";
    std::optional<double> number = 1.5;
    uint64_t integer = 7;
    bool flag = false;
    std::vector<uint32_t> integers = {1};
    std::vector<std::string> texts = {"x"};
    Secret hidden;
    std::vector<Property> properties;
  };
  constexpr std::array<std::string_view, 2> kChoices = {"one", "two"};
  const auto read = [&](const std::string& yaml, Use use, Values* values) {
    const auto tree = ParseYaml(yaml, "c.yaml");
    EXPECT_TRUE(tree) << yaml;
    Outcome outcome;
    Reader reader(Place(*tree), &outcome);
    reader.Text({"text", ""}, &values->text, use);
    reader.OneOf({"choice", ""}, &values->choice, kChoices, use);
    reader.Number({"number", ""}, &values->number, Range::Positive(), use);
    reader.Integer({"integer", ""}, &values->integer, 1, 100, use);
    reader.Flag({"flag", ""}, &values->flag, use);
    reader.Integers({"integers", ""}, &values->integers, 0, 9, use);
    reader.Texts({"texts", ""}, &values->texts, use);
    reader.Hidden({"hidden", ""}, &values->hidden, use);
    reader.Verbatim({"properties", ""}, &values->properties, use);
    reader.Finish();
    return outcome.wrong;
  };
  const std::string yaml =
      "text: b\nchoice: two\nnumber: 2\ninteger: 8\nflag: true\nintegers: [2]\ntexts: [y]\n"
      "hidden: h\nproperties: {a: b}\n";
  Values used, unused;
  ASSERT_TRUE(read(yaml, Use::kOptional, &used));
  EXPECT_EQ(used.text + used.choice + used.hidden.text, "btwoh");
  EXPECT_EQ(used.number, 2);
  EXPECT_EQ(used.integer, 8u);
  EXPECT_TRUE(used.flag);
  EXPECT_THAT(used.integers, ElementsAre(2));
  EXPECT_THAT(used.texts, ElementsAre("y"));
  EXPECT_EQ(used.properties.size(), 1u);

  ASSERT_TRUE(read(yaml, Use::kUnused, &unused));
  EXPECT_EQ(unused.text + unused.choice + unused.hidden.text, "aone");
  EXPECT_EQ(unused.number, 1.5);
  EXPECT_EQ(unused.integer, 7u);
  EXPECT_FALSE(unused.flag);
  EXPECT_THAT(unused.integers, ElementsAre(1));
  EXPECT_THAT(unused.texts, ElementsAre("x"));
  EXPECT_TRUE(unused.properties.empty());
  for (const char* bad : {"choice: three", "number: -1", "integer: 0", "flag: 1", "texts: []"})
    EXPECT_FALSE(read(bad, Use::kUnused, &unused)) << bad;
}

// Three readers of this key disagreed once: what is planned, what is billed and what is read.
TEST(Config, AGeneratorIsReadOnce) {
  const Result<Config> config = Parse(kSample, "c.yaml", {"source.passes=3"});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->source.kind, Source::Kind::kGenerator);
  EXPECT_EQ(config->source.passes, 1u);
}

TEST(Config, NotPrivateMeansInfiniteEpsilon) {
  std::string yaml = Sample("kind: adafest\n      threshold: 10", "kind: none");
  yaml.replace(yaml.find("epsilon: 8"), 10, "epsilon: .inf");
  const Result<Config> config = Parse(yaml, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(std::isinf(config->learners[0].privacy.epsilon));
}

TEST(Config, MemoryTakesSuffixes) {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, uint64_t>>{
           {"100000000", 100000000}, {"512MiB", 512ull << 20}, {"3GiB", 3ull << 30}}) {
    const Result<Config> config = Parse(kSample, "c.yaml", {"memory.total_bytes=" + text});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->memory_total_bytes, bytes) << text;
  }
}

// A linear model's period is as long as its noise asks for; a period that is named stays.
TEST(Config, ALinearModelsPeriodFollowsFromEpsilon) {
  const auto batch = [](const std::string& mechanism, const std::string& epsilon,
                        const std::string& participation, bool dumped = false) {
    Result<Config> config =
        Parse(kSample, "c.yaml",
              {"learners.0.model={kind: linear}", "learners.0.mechanism={kind: " + mechanism + "}",
               "learners.0.participation={" + participation + "}",
               "learners.0.privacy.epsilon=" + epsilon});
    EXPECT_TRUE(config) << config.error().message;
    if (dumped) config = Parse(Dump(*config), "dump", {});
    return config->learners[0].participation.batch;
  };
  EXPECT_EQ(batch("sums", "1", "mode: once"), 150'000u);
  EXPECT_EQ(batch("sums", "8", "mode: once"), 53'000u);
  EXPECT_EQ(batch("sums", "8", "mode: once", /*dumped=*/true), 53'000u);
  EXPECT_EQ(batch("sums", "100", "mode: once"), 50'000u);
  EXPECT_EQ(batch("none", ".inf", "mode: once"), 50'000u);
  EXPECT_EQ(batch("sums", "0.001", "mode: once"), 1'000'000u);
  EXPECT_EQ(batch("sums", "1", "mode: once, batch: 2048"), 2048u);
  EXPECT_EQ(batch("sums", "1", "mode: once, batch: 2048", /*dumped=*/true), 2048u);
}

// A prediction is told in the words in which the operator wrote of the label.
TEST(Config, ALabelIsCalledAsTheRecordsCallIt) {
  const auto name = [](const std::string& format, const std::string& keys) {
    const Result<Config> config = Parse(kSample, "c.yaml",
                                        {"source={kind: log, files: /dev/null, format: " + format +
                                         ", " + format + ": " + keys + "}"});
    EXPECT_TRUE(config) << config.error().message;
    return config->source.LabelName();
  };
  EXPECT_EQ(Parse(kSample, "c.yaml", {})->source.LabelName(), "click");
  EXPECT_EQ(name("json", "{user: /who}"), "label 1");
  EXPECT_EQ(name("json", "{label: /event/has~1paid}"), "has/paid");
  EXPECT_EQ(name("json", "{label: /stars, label_at_least: 4}"), "stars of 4 or more");
  EXPECT_EQ(name("csv", "{label: paid}"), "paid");
  EXPECT_EQ(name("csv", "{label: what, label_values: {view: 0, buy: 1, order: 1}}"),
            "buy or order");
}

// Every mechanism and every clip: read, dumped and read again.
TEST(Config, MechanismsAreReadAndDumped) {
  const std::string poisson =
      "learners.0.participation={mode: poisson, batch: 100, sampling_rate: 0.01, "
      "steps_per_period: 7, period_files: 2}";
  for (const std::string mechanism :
       {"{kind: adafest, threshold: .inf, clipping: automatic}",
        "{kind: adafest+, threshold: 3, clipping: per-layer, vocabulary: {source: first-period, "
        "keep: 50, query: gumbel, noise_multiplier: 2.5}}",
        "{kind: fest, vocabulary: {source: running, keep: 50, noise_multiplier: 2.5, clip: 2}}",
        "{kind: fest, vocabulary: {source: file, file: values.tsv, keep: 9}}",
        "{kind: dp-sgd, gradient_clip: 3, clipping: quantile, quantile: {target: 0.7, rate: 0.1, "
        "noise_multiplier: 10}}",
        "{kind: exponential, rows: 40, row_epsilon: 0.01, row_clip: 2}"}) {
    const Result<Config> config =
        Parse(kSample, "c.yaml", {"learners.0.mechanism=" + mechanism, poisson});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->learners[0].participation.period, 0u);
    const std::string dump = Dump(*config);
    const Result<Config> again = Parse(dump, "dump", {});
    ASSERT_TRUE(again) << again.error().message << "\n" << dump;
    EXPECT_EQ(Dump(*again), dump);
    // Nothing that was written is lost: each word of it is in the dump.
    std::istringstream words(mechanism);
    for (std::string word; words >> word;) {
      while (!word.empty() && std::string_view("{},:").find(word.back()) != std::string_view::npos)
        word.pop_back();
      while (word.starts_with('{')) word.erase(0, 1);
      EXPECT_THAT(dump, HasSubstr(word)) << mechanism;
    }
  }
}

class Files : public testing::Test {
 protected:
  Files() {
    for (const char* name : {"day-02.gz", "day-00.gz", "day-01.gz", "early.gz", "od[d].gz"}) {
      std::ofstream(directory_ + "/" + name) << "x";
    }
  }

  const test::TempDir folder_;
  const std::string directory_ = folder_.path();
};

TEST_F(Files, PatternsAreSortedInsideAndKeptInOrder) {
  const Result<Config> config = Parse(
      kSample, "c.yaml",
      {"source.kind=log", "source.files=[" + directory_ + "/early.gz, " + directory_ + "/day-*]"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->source.files,
              ElementsAre(directory_ + "/early.gz", directory_ + "/day-00.gz",
                          directory_ + "/day-01.gz", directory_ + "/day-02.gz"));
}

TEST_F(Files, DumpOfAFileThatLooksLikeAPatternNamesThatFile) {
  const Result<Config> config =
      Parse(kSample, "c.yaml", {"source.kind=log", "source.files=" + directory_ + "/od*"});
  ASSERT_TRUE(config) << config.error().message;
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(again->source.files, ElementsAre(directory_ + "/od[d].gz"));
}

// Everything is in the dump: two configurations with one dump are the same.
void ExpectRoundTrip(const Config& config) {
  const std::string dump = Dump(config);
  const Result<Config> again = Parse(dump, "dump", {});
  ASSERT_TRUE(again) << again.error().message << "\n" << dump;
  EXPECT_EQ(Dump(*again), dump);
}

TEST(Dump, OfTheSampleParsesToTheSame) {
  const Result<Config> config = Parse(kSample, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  ExpectRoundTrip(*config);
  EXPECT_THAT(Dump(*config), HasSubstr("  - id: \"ctr\"\n    model:\n      kind: pctr\n"));
}

TEST(Dump, KeepsAwkwardTexts) {
  const Result<Config> config =
      Parse(kSample, "c.yaml", {"store.path=/a \"b\"\\ # c: [x]\té\x01/d"});
  ASSERT_TRUE(config) << config.error().message;
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->store.path, "/a \"b\"\\ # c: [x]\té\x01/d");
}

TEST(Dump, HasATotalBudgetWhereThereIsOne) {
  EXPECT_THAT(Dump(*Parse(kSample, "c.yaml", {})), Not(HasSubstr("budget")));
  const Result<Config> config =
      Parse(std::string(kSample) + "budget: {epsilon: 10, delta: 1e-6, on_exhausted: exit}",
            "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->budget.epsilon, 10);
  EXPECT_EQ(again->budget.delta, 1e-6);
  EXPECT_EQ(again->budget.on_exhausted, Privacy::OnExhausted::kExit);
}

TEST(Dump, LeavesOutWhatBelongsToAnotherKind) {
  const Result<Config> config = Parse(kSample, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(Dump(*config), Not(HasSubstr("passes")));
  EXPECT_THAT(Dump(*config), HasSubstr("rows_per_day"));
}

TEST(Dump, RedactsSecrets) {
  std::string yaml;
  Dumper dumper(&yaml, 0, /*compact=*/false);
  std::string secret = "hunter2", open = "open";
  for (const char* key : {"sasl.password", "client_secret", "ssl.key_pem", "username"}) {
    dumper.Text({key, ""}, key == std::string("username") ? &open : &secret, Use::kOptional);
  }
  EXPECT_EQ(yaml,
            "sasl.password: \"(redacted)\"\nclient_secret: \"(redacted)\"\n"
            "ssl.key_pem: \"(redacted)\"\nusername: \"open\"\n");
}

// Every file in config/ but Prometheus' and Grafana's, so that none can be forgotten.
std::vector<std::string> ShippedNames() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(TACIT_SOURCE_DIR "/config"))
    if (const auto name = file.path().filename(); name != "alerts.yaml" && name != "grafana.json")
      names.push_back(name.stem().string());
  std::ranges::sort(names);
  return names;
}

class Shipped : public testing::TestWithParam<std::string> {};

TEST_P(Shipped, ParsesAndRoundTrips) {
  const std::string path = std::string(TACIT_SOURCE_DIR) + "/config/" + GetParam() + ".yaml";
  const Result<Config> config = Load(path, {"source.files=/dev/null"});
  ASSERT_TRUE(config) << config.error().message;
  ExpectRoundTrip(*config);
}
INSTANTIATE_TEST_SUITE_P(Files, Shipped, testing::ValuesIn(ShippedNames()));

// Not in the folder of the store, which is what people put back.
TEST_P(Shipped, KeepsTheWitnessInAFolderOfItsOwn) {
  const std::string path = std::string(TACIT_SOURCE_DIR) + "/config/" + GetParam() + ".yaml";
  const Result<Config> config = Load(path, {"source.files=/dev/null"});
  ASSERT_TRUE(config) << config.error().message;
  const std::filesystem::path store = config->store.path, witness = config->store.witness;
  EXPECT_FALSE(config->store.witness_is_default);
  EXPECT_EQ(witness.parent_path(), store.parent_path().string() + "-witness");
  EXPECT_EQ(witness.filename(), store.filename().string() + ".witness") << "where readers look";
}

// And the unit makes that folder.
TEST(Shipped, TheUnitHasAFolderForTheWitness) {
  const std::string unit = ReadAll(std::string(TACIT_SOURCE_DIR) + "/systemd/tacitd.service");
  EXPECT_THAT(unit, HasSubstr("\nStateDirectory=tacit tacit-witness\n"));
  EXPECT_THAT(unit, HasSubstr("/var/lib/tacit-witness/store.witness"));
}

TEST(Shipped, DemoIsCriteo) {
  const Result<Config> config =
      Load(std::string(TACIT_SOURCE_DIR) + "/config/demo.yaml", {"source.files=/dev/null"});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->features.size(), 39u);
  EXPECT_EQ(config->features[12].name, "I13");
  EXPECT_EQ(config->features[12].kind, Feature::Kind::kDense);
  EXPECT_EQ(config->features[13].name, "C1");
  EXPECT_EQ(config->features[38].name, "C26");
}

// Every value that the reference calls a default is one.
TEST(Shipped, ReferenceHasTheDefaults) {
  const std::string path = std::string(TACIT_SOURCE_DIR) + "/config/reference.yaml";
  const Result<Config> config = Load(path, {"source.files=/dev/null"});
  ASSERT_TRUE(config) << config.error().message;
  Config plain;
  plain.source.files = config->source.files;
  plain.features = config->features;
  plain.features[0].transform = Feature().transform;
  plain.learners.resize(1);
  Learner& learner = plain.learners[0];
  learner.id = config->learners[0].id;
  learner.mechanism.threshold = config->learners[0].mechanism.threshold;
  learner.privacy.unit = config->learners[0].privacy.unit;
  learner.privacy.epsilon = config->learners[0].privacy.epsilon;
  learner.privacy.delta = config->learners[0].privacy.delta;
  plain.store.path = config->store.path;
  plain.store.witness = config->store.witness;  // its default is only for a start by hand
  plain.store.checkpoints.path = plain.store.path + ".checkpoints";
  plain.dead_letters.path = plain.store.path + ".dead-letters.jsonl";
  EXPECT_EQ(Dump(*config), Dump(plain));
}

}  // namespace
}  // namespace tacit::config
