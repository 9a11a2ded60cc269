// Tests the formats that a log may be written in, and what becomes of records that cannot be read.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "http/client.h"
#include "service.h"
#include "support/small_run.h"

namespace tacit {
namespace {

using test::Ended;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A Criteo line by schemas/interaction.schema.json: what it lacks is left out, or null.
std::string ToJson(const std::string& line, bool nulls) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(40);
  std::string features;
  for (size_t i = 39; i > 0; --i) {  // in an order of their own
    const bool dense = i <= 13;
    if (fields[i].empty() && !nulls) continue;
    const std::string value = fields[i].empty() ? "null"
                              : dense           ? fields[i]
                                                : fmt::format("\"{}\"", fields[i]);
    features += fmt::format("{}\"{}{}\":{}", features.empty() ? "" : ",", dense ? "I" : "C",
                            dense ? i : i - 13, value);
  }
  return fmt::format(R"({{"features":{{{}}},"label":{}}})", features, fields[0]);
}

class FormatsTest : public testing::Test {
 protected:
  FormatsTest() {
    run_.mechanism = "{kind: none}";
    run_.privacy = "{unit: event, epsilon: .inf, delta: 1.0e-6}";
  }

  Ended Train(const std::string& store, const std::string& files,
              const std::vector<std::string>& settings) {
    run_.store = store;
    run_.files = files;
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    for (const std::string& setting : settings) {
      command.push_back("--set");
      command.push_back(setting);
    }
    return test::Run(command);
  }
  std::string Scores(const std::string& store, const std::string& settings = "") {
    const Ended ended = test::Run({TACIT, "query", "score", "--checkpoint", dir_ / store,
                                   "--config", dir_ / (store + ".yaml"), "--learner", "ctr",
                                   "--tsv", dir_ / "day-0.tsv", "--count", "50", "--json"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err << settings;
    const size_t begin = ended.out.find("\"scores\"");
    return ended.out.substr(begin, ended.out.find(']', begin) - begin);
  }

  TempDir dir_;
  SmallRun run_;
};

// Without noise a run is a function of its events, so equal scores are equal events.
TEST_F(FormatsTest, AJsonLogGivesTheModelOfTheSameCriteoLog) {
  test::WriteSmallLog(dir_, 2, 3000, 1);
  for (const char* day : {"day-0", "day-1"}) {
    std::string lines;
    bool nulls = false;
    for (const std::string& line : Lines(test::ReadFile(dir_ / (day + std::string(".tsv")))))
      lines += ToJson(line, nulls = !nulls) + "\n";
    test::WriteFile(dir_ / (day + std::string(".jsonl")), lines);
  }
  const Ended criteo = Train("criteo", "day-*.tsv", {});
  ASSERT_EQ(criteo.exit_code, 0) << criteo.err;
  const Ended json = Train("json", "day-*.jsonl", {"source.format=json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_FALSE(std::filesystem::file_size(dir_ / "json.dead-letters.jsonl")) << json.err;
  const std::string scores = Scores("criteo");
  EXPECT_GT(std::count(scores.begin(), scores.end(), ','), 40);
  EXPECT_EQ(Scores("json"), scores);

  // The same, offline: what an experiment reads is what the daemon does.
  const auto auc = [&](const std::string& store, std::vector<std::string> more) {
    std::vector<std::string> command{
        TACIT, "evaluate", "ctr", "--config", dir_ / (store + ".yaml"), "--json"};
    command.insert(command.end(), more.begin(), more.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    const size_t begin = ended.out.find("\"auc\"");
    return ended.out.substr(begin, ended.out.find('}', begin) - begin);
  };
  EXPECT_EQ(auc("json", {"--set", "source.format=json", "--data", dir_ / "day-0.jsonl"}),
            auc("criteo", {"--data", dir_ / "day-0.tsv"}));
}

// A Criteo line as some shop would send it: numbers in a list, texts below a context, the label in
// words.
std::string ToShopJson(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(40);
  std::string numbers, texts;
  for (size_t i = 1; i <= 13; ++i)
    numbers += (i == 1 ? "" : ",") + (fields[i].empty() ? std::string("null") : fields[i]);
  for (size_t i = 14; i < 40; ++i)
    if (!fields[i].empty())
      texts += fmt::format("{}\"C{}\":\"{}\"", texts.empty() ? "" : ",", i - 13, fields[i]);
  return fmt::format(R"({{"context":{{{},"numbers":[{}]}},"event":{{"type":"{}"}}}})",
                     texts.empty() ? "\"none\":0" : texts, numbers,
                     fields[0] == "1" ? "buy" : "view");
}

TEST_F(FormatsTest, JsonOfAShopsOwnShapeGivesTheModelOfTheSameCriteoLog) {
  test::WriteSmallLog(dir_, 1, 3000, 1);
  std::string lines, features;
  for (const std::string& line : Lines(test::ReadFile(dir_ / "day-0.tsv")))
    lines += ToShopJson(line) + "\n";
  test::WriteFile(dir_ / "shop-0.jsonl", lines + R"({"event":{"type":"look"}})" + "\n");
  for (int i = 1; i <= 13; ++i)
    features += fmt::format("{}I{}: /context/numbers/{}", i == 1 ? "" : ", ", i, i - 1);
  const std::vector<std::string> shape{"source.format=json", "source.json.label=/event/type",
                                       "source.json.label_values={buy: 1, view: 0}",
                                       "source.json.features={" + features + "}",
                                       "source.json.features_at=/context"};
  const Ended criteo = Train("criteo", "day-*.tsv", {});
  ASSERT_EQ(criteo.exit_code, 0) << criteo.err;
  const Ended shop = Train("shop", "shop-*.jsonl", shape);
  ASSERT_EQ(shop.exit_code, 0) << shop.err;
  const auto letters = Lines(test::ReadFile(dir_ / "shop.dead-letters.jsonl"));
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_THAT(letters[0], HasSubstr("label (/event/type): is none of label_values"));
  EXPECT_EQ(Scores("shop"), Scores("criteo"));
  // A place that cannot be is named at the start.
  const Ended refused =
      Train("other", "shop-*.jsonl", {"source.format=json", "source.json.user=id"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("source.json.user: 'id' is no JSON pointer"));
}

// A Criteo line as a spreadsheet would write it: texts in quotes, then numbers, the label last.
std::string ToCsv(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(40);
  std::string values;
  for (size_t i = 14; i < 40; ++i) values += '"' + fields[i] + "\";";
  for (size_t i = 1; i <= 13; ++i) values += fields[i] + ';';
  return values + (fields[0] == "1" ? "buy" : "view");
}

TEST_F(FormatsTest, LinesOfValuesGiveTheModelOfTheSameCriteoLog) {
  test::WriteSmallLog(dir_, 2, 2000, 1);
  std::string names, columns;
  for (int i = 1; i <= 26; ++i) names += fmt::format("C{};", i);
  for (int i = 1; i <= 13; ++i) names += fmt::format("I{};", i);
  names += "bought";
  for (const char c : names) columns += c == ';' ? ',' : c;
  for (const char* day : {"day-0", "day-1"}) {
    std::string lines;
    for (const std::string& line : Lines(test::ReadFile(dir_ / (day + std::string(".tsv")))))
      lines += ToCsv(line) + "\r\n";
    test::WriteFile(dir_ / (day + std::string("-bare.csv")), lines);
    test::WriteFile(dir_ / (day + std::string("-named.csv")), names + "\r\n" + lines);
  }
  std::vector<std::string> shape{"source.format=csv", "source.csv.separator=;",
                                 "source.csv.label=bought",
                                 "source.csv.label_values={buy: 1, view: 0}"};
  const Ended criteo = Train("criteo", "day-*.tsv", {});
  ASSERT_EQ(criteo.exit_code, 0) << criteo.err;
  // Files without a header have the offsets of the Criteo log, and so its steps.
  std::vector<std::string> bare = shape;
  bare.insert(bare.end(), {"source.csv.header=false", "source.csv.columns=[" + columns + "]"});
  const Ended without = Train("bare", "day-*-bare.csv", bare);
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(std::filesystem::file_size(dir_ / "bare.dead-letters.jsonl"), 0u);
  EXPECT_EQ(Scores("bare"), Scores("criteo"));
  // A header is no record, and needs no configuration.
  const Ended named = Train("named", "day-*-named.csv", shape);
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(std::filesystem::file_size(dir_ / "named.dead-letters.jsonl"), 0u);
  EXPECT_THAT(named.out, Not(HasSubstr("could not be learnt from")));

  // Counts of records leave it out.
  const std::string day = test::ReadFile(dir_ / "day-0-named.csv");
  const size_t record = day.find('\n', day.find('\n') + 1) + 1;
  test::WriteFile(dir_ / "day-2-named.csv", day.substr(0, record) + "1;2\r\n");
  EXPECT_THAT(Train("named", "day-*-named.csv", shape).out,
              HasSubstr("1 of 2 records could not be learnt from"));

  // Another file's columns are not guessed at, and nor is a name that no column has.
  test::WriteFile(dir_ / "day-2-named.csv", "a;b\r\n1;2\r\n");
  const Ended refused = Train("named", "day-*-named.csv", shape);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("day-2-named.csv:1: the columns are a, b, and not C1, C2"));
  // A restore refuses it as a start does, unless it reads no record.
  std::filesystem::create_directory(dir_ / "copy");
  test::WriteFile(dir_ / "copy/checkpoint.manifest", "no manifest");
  std::vector<std::string> restore{TACIT,         "checkpoint", "restore",
                                   dir_ / "copy", "--config",   dir_ / "named.yaml"};
  for (const std::string& setting : shape) restore.insert(restore.end(), {"--set", setting});
  const Ended restored = test::Run(restore);
  EXPECT_EQ(restored.exit_code, 2);
  EXPECT_THAT(restored.err, HasSubstr("day-2-named.csv:1: the columns are a, b, and not C1, C2"));
  restore.push_back("--skip-records");
  EXPECT_THAT(test::Run(restore).err, Not(HasSubstr("the columns are")));
  std::filesystem::remove(dir_ / "day-2-named.csv");
  shape[2] = "source.csv.label=bougt";
  const Ended misspelt = Train("named", "day-*-named.csv", shape);
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_THAT(misspelt.err,
              HasSubstr("label: there is no column 'bougt' (did you mean 'bought'?)"));
}

TEST_F(FormatsTest, BadJsonLinesAreDeadLettersWithFileLineAndField) {
  std::string good;
  for (int i = 0; i < 500; ++i)
    good += fmt::format("{{\"label\":{},\"features\":{{\"I1\":{}}}}}\n", i % 2, i);
  const std::string bad =
      "{\"label\":1,\"features\":{\"I7\":\"many\"}}\n"  // line 1
      "{\"label\":1,\n"                                 // line 2
      "{\"label\":7}\n"                                 // line 3
      "\n" +                                            // line 4
      std::string(2 << 20, 'x') +
      "\n";  // line 5: 2 MiB
  test::WriteFile(dir_ / "day.jsonl", bad + good);
  const Ended ended = Train("store", "day.jsonl", {"source.format=json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("5 of 505 records"));
  const std::vector<std::string> letters = Lines(test::ReadFile(dir_ / "store.dead-letters.jsonl"));
  ASSERT_EQ(letters.size(), 5u);
  const char* kReasons[] = {"I7: is no number", "no valid JSON", "label: is neither 0 nor 1",
                            "the record is empty", "1048576"};
  for (size_t i = 0; i < letters.size(); ++i) {
    EXPECT_THAT(letters[i], HasSubstr(fmt::format("\"line\":{},", i + 1)));
    EXPECT_THAT(letters[i], HasSubstr("day.jsonl"));
    EXPECT_THAT(letters[i], HasSubstr(kReasons[i]));
  }
}

TEST_F(FormatsTest, ARecordThatLacksAFeatureIsADeadLetterWhereThatIsAsked) {
  test::WriteFile(dir_ / "day.jsonl", "{\"label\":1,\"features\":{\"I1\":1}}\n");
  const Ended ended = Train("store", "day.jsonl", {"source.format=json", "source.missing=reject"});
  EXPECT_EQ(ended.exit_code, 1) << "nothing is left to learn from; " << ended.err;
  EXPECT_THAT(test::ReadFile(dir_ / "store.dead-letters.jsonl"),
              HasSubstr("feature 'I2' is missing"));
}

TEST_F(FormatsTest, WhatIsNotReadIsRefusedAtStart) {
  test::WriteSmallLog(dir_, 1, 10, 1);
  const auto refusal = [&](const std::string& format) {
    const Ended ended = Train("store", "day-0.tsv", {"source.format=" + format});
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(refusal("avro"), HasSubstr("day-0.tsv: is no Avro container file"));
  EXPECT_THAT(refusal("protobuf"), HasSubstr("a log file has one record a line"));
  EXPECT_THAT(refusal("jsonl"), HasSubstr("(did you mean 'json'?)"));
}

// Readers start from the configurations that we ship.
TEST_F(FormatsTest, EveryShippedConfigurationIsAccepted) {
  size_t checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(TACIT_SOURCE_DIR "/config")) {
    // Prometheus' rules and Grafana's panels have tests of their own.
    const std::string name = file.path().filename();
    if (name == "alerts.yaml" || name == "grafana.json") continue;
    std::vector<std::string> command{TACITD,           "--config", file.path().string(),
                                     "--check-config", "--set",    "source.files=/dev/null"};
    // The catalogue is read at start, if the file names one.
    if (test::ReadFile(file.path().string()).find("\ncatalogue:") != std::string::npos) {
      test::WriteFile(dir_ / "items.dat", "1::One (2001)::Drama\n2::Two (2002)::Comedy\n");
      command.insert(command.end(), {"--set", "catalogue.file=" + (dir_ / "items.dat")});
    }
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 0) << file.path() << ": " << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("# In numbers"));
    EXPECT_THAT(ended.out, Not(HasSubstr("WARNING"))) << file.path();
    ++checked;
  }
  EXPECT_GE(checked, 5u);
}

TEST_F(FormatsTest, CheckingShowsNoSecretAndWarnsOfOneInTheOpen) {
  test::WriteFile(dir_ / "secret", "swordfish\n");
  run_.more =
      "kafka:\n  bootstrap.servers: localhost:9092\n  sasl.password: hunter2\n"
      "  ssl.key.password: {file: \"" +
      (dir_ / "secret") + "\"}\n";
  const std::string config = run_.WriteConfig(dir_);
  const Ended ended = test::Run({TACITD, "--config", config, "--check-config", "--set",
                                 "source={kind: kafka, topic: clicks}"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("sasl.password: \"(redacted)\""));
  EXPECT_THAT(ended.out, HasSubstr("kafka.sasl.password: a secret in the open"));
  EXPECT_THAT(ended.out, HasSubstr("ssl.key.password: {file: "));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("hunter2")));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("swordfish")));
}

// No broker is there, and librdkafka says all it can of that and of its settings.
TEST_F(FormatsTest, ADaemonBesideKafkaTellsNobodyItsSecrets) {
  test::WriteFile(dir_ / "secret", "swordfish\n");
  run_.more =
      "kafka:\n  bootstrap.servers: 127.0.0.1:1\n  group.id: tacit\n  debug: all\n"
      "  security.protocol: SASL_PLAINTEXT\n  sasl.mechanism: PLAIN\n  sasl.username: me\n"
      "  ssl.key.password: hunter2\n  sasl.password: {file: \"" +
      (dir_ / "secret") + "\"}\n  client.rack: {file: \"" + (dir_ / "secret") + "\"}\n";
  const std::string operators = "unix:" + (dir_ / "operators");
  test::Service service(
      dir_, run_,
      {"--set",
       "source={kind: kafka, topic: clicks, format: json, framing: confluent, registry: {url: "
       "'http://127.0.0.1:1', username: me, password: hunter3}}",
       "--set", "log.level=trace", "--set", "serve.operator_listen=" + operators});
  ASSERT_TRUE(service.WaitFor("/metrics"));
  std::string told;
  for (const char* path : {"/metrics", "/v1/privacy", "/readyz", "/v1/ledger"}) {
    for (const std::string& url : {service.url(), operators}) {
      const auto answer = http::Fetch(url + ":" + path, "GET", "", test::kPatience);
      if (answer) told += answer->body;
    }
  }
  // A connection has been tried.
  EXPECT_TRUE(service.WaitForWord("onnect"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_THAT(ended->err, HasSubstr("librdkafka"));
  EXPECT_THAT(ended->err, HasSubstr("sasl.username"));  // its settings are among what it says
  EXPECT_THAT(ended->err, HasSubstr("ssl.key.password: a secret in the open"));
  told += ended->err + ended->out;
  EXPECT_THAT(told, HasSubstr("tacit_"));
  for (const char* secret : {"hunter2", "hunter3", "swordfish"})
    EXPECT_THAT(told, Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace tacit
