// `tacit evaluate --config` is the daemon's program over files: compared with the daemon itself,
// both without noise, from copies of one store, which have the same keys.
#include "lab/configured_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>

#include "daemon/daemon.h"
#include "lab/part_of_log.h"
#include "stream/log/log_source.h"
#include "support/json.h"
#include "support/process.h"
#include "wiring/assembly.h"

namespace tacit::lab {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using ::testing::HasSubstr;

constexpr int kShopItems = 15, kShopDays = 4, kShopClicks = 6;
constexpr uint64_t kShopUsers = 40;

// Every user goes round a circle of items, a few steps a day.
void WriteCircle(const TempDir& dir) {
  std::string catalogue;
  for (int i = 0; i < kShopItems; ++i) catalogue += fmt::format("item-{}\n", i);
  test::WriteFile(dir / "items.dat", catalogue);
  for (int day = 0; day < kShopDays; ++day) {
    std::string text;
    for (int click = 0; click < kShopClicks; ++click)
      for (int user = 0; user < int{kShopUsers}; ++user) {
        const int item = (3 * user + day * kShopClicks + click) % kShopItems;
        text += fmt::format(
            R"({{"label":{},"user":"u{}","item":"item-{}","timestamp_ms":{},"features":{{"x":{},"c":"{}"}}}})"
            "\n",
            (user + click) % 3 > 0, user, item, 1000 * day + click + 1, item, item % 7);
      }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
}

std::string WriteShopConfig(const TempDir& dir, bool is_private, const std::string& store) {
  const std::string privacy = is_private ? "{unit: user, epsilon: 50, delta: 1.0e-6}"
                                         : "{unit: user, epsilon: .inf, delta: 1.0e-6}";
  const auto mechanism = [&](const char* kind) { return is_private ? kind : "{kind: none}"; };
  std::string yaml = fmt::format(
      "source: {{kind: log, files: {}, format: json}}\n"
      "catalogue: {{file: {}}}\n"
      "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, buckets: "
      "16}}]}}\n"
      "store: {{path: {}, commit_interval_ms: 5}}\n"
      "serve: {{listen: \"\"}}\n"
      "training: {{idle_priority: false, workers: 1}}\n"
      "memory: {{total_bytes: 900MiB}}\n"
      "learners:\n",
      dir / "day-*.jsonl", dir / "items.dat", dir / store);
  const std::string participation = fmt::format(
      "    participation: {{mode: once, batch: 100000, max_participations: {}}}\n    privacy: {}\n",
      kShopDays, privacy);
  yaml += fmt::format("  - id: counts\n    model: {{kind: transitions}}\n    mechanism: {}\n{}",
                      mechanism("{kind: counts}"), participation);
  yaml += fmt::format(
      "  - id: next\n    model: {{kind: sequence, width: 16, length: 8, blocks: 1}}\n"
      "    mechanism: {}\n    participation: {{mode: once, batch: 60, max_participations: 16}}\n"
      "    optimizer: {{kind: adam, learning_rate: 0.02}}\n    privacy: {}\n",
      mechanism("{kind: dp-sgd}"), privacy);
  yaml += fmt::format(
      "  - id: ctr\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {}\n"
      "    participation: {{mode: once, batch: 60, max_participations: 16}}\n    privacy: {}\n",
      mechanism("{kind: dp-sgd}"), privacy);
  const std::string path = dir / (store + ".yaml");
  test::WriteFile(path, yaml);
  return path;
}

config::Config Loaded(const std::string& path) {
  auto config = config::Load(path, {});
  EXPECT_TRUE(config) << config.error().message;
  return *std::move(config);
}

wiring::Assembly Assembled(const config::Config& config) {
  auto assembly = wiring::Assemble(config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *std::move(assembly);
}

// Every learner's state, and the rows of the click model.
struct Learnt {
  std::vector<store::DenseState> dense;
  std::vector<std::string> released;
  std::map<uint64_t, std::vector<float>> rows;
  std::vector<privacy::LedgerTotal> ledger;
};

Learnt ReadLearnt(const wiring::Assembly& assembly) {
  Learnt learnt;
  const auto store = store::Store::Open(wiring::MakeStoreOptions(assembly));
  EXPECT_TRUE(store) << store.error().message;
  if (!store) return learnt;
  const auto snapshot = (*store)->Latest();
  for (const wiring::LearnerPlan& plan : assembly.learners) {
    const auto dense = snapshot->Dense(plan.index);
    learnt.dense.push_back(dense ? *dense : store::DenseState());
    const auto released = snapshot->Released(plan.index);
    learnt.released.push_back(released ? *released : "");
  }
  EXPECT_TRUE(
      snapshot->ForWritten(LearnerIndex(2), 0, [&](uint64_t row, std::span<const float> floats) {
        learnt.rows.emplace(row, std::vector(floats.begin(), floats.end()));
      }));
  learnt.ledger = snapshot->learners();
  return learnt;
}

void ExpectTheSame(const Learnt& a, const Learnt& b) {
  ASSERT_EQ(a.dense.size(), b.dense.size());
  for (size_t i = 0; i < a.dense.size(); ++i) {
    EXPECT_EQ(a.dense[i].parameters, b.dense[i].parameters) << i;
    EXPECT_EQ(a.dense[i].optimizer, b.dense[i].optimizer) << i;
  }
  EXPECT_EQ(a.released, b.released);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_FALSE(a.rows.empty());
  EXPECT_FALSE(a.released[0].empty());
  ASSERT_EQ(a.ledger.size(), b.ledger.size());
  for (size_t i = 0; i < a.ledger.size(); ++i) {
    EXPECT_EQ(a.ledger[i].steps, b.ledger[i].steps);
    EXPECT_EQ(a.ledger[i].epsilon, b.ledger[i].epsilon);
  }
}

// Makes an empty store, and copies of it: they draw no keys of their own.
void MakeStores(const wiring::Assembly& assembly, const std::vector<std::string>& copies) {
  auto options = wiring::MakeStoreOptions(assembly);
  options.witness = "";
  {
    const auto store = store::Store::Open(options);
    ASSERT_TRUE(store) << store.error().message;
  }
  for (const std::string& copy : copies) fs::copy(options.path, copy, fs::copy_options::recursive);
}

// The lines of a program's output that are not its log's, which begin with a date.
std::string WithoutLog(const std::string& printed) {
  std::istringstream lines(printed);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("[2")) kept += line + "\n";
  return kept;
}

class ConfiguredRunTest : public ::testing::TestWithParam<bool> {
 protected:
  ConfiguredRunTest() { WriteCircle(dir_); }
  const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(, ConfiguredRunTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Private" : "Plain"; });

TEST_P(ConfiguredRunTest, LearnsAndPrintsWhatTheDaemonDoes) {
  const std::string path = WriteShopConfig(dir_, GetParam(), "daemon");
  config::Config config = Loaded(path);
  config.store.witness = "none";
  const wiring::Assembly assembly = Assembled(config);
  MakeStores(assembly, {dir_ / "offline"});

  const daemon::Start start{
      .config = path, .read = [&] { return config::Load(path, {}, config::LogFiles::kUnread); }};
  testing::internal::CaptureStdout();
  const auto code = daemon::RunDaemon(assembly, start, {.until_end = true});
  const std::string printed = WithoutLog(testing::internal::GetCapturedStdout());
  ASSERT_TRUE(code) << code.error().message;
  ASSERT_EQ(*code, 0);
  ConfiguredRunOptions options;
  options.store = dir_ / "offline";
  const auto run = RunConfigured(config, options);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->tables, printed);
  EXPECT_THAT(printed, HasSubstr("HIT@10"));
  EXPECT_EQ(run->records, uint64_t{kShopDays} * kShopClicks * kShopUsers);

  config::Config offline = config;
  offline.store.path = options.store;
  ExpectTheSame(ReadLearnt(assembly), ReadLearnt(Assembled(offline)));
}

// Files that are held out change nothing: the store is that of a run over the other files.
TEST_P(ConfiguredRunTest, DaysHeldOutArePredictedAndNotLearntFrom) {
  const config::Config config = Loaded(WriteShopConfig(dir_, GetParam(), "all"));
  MakeStores(Assembled(config), {dir_ / "held", dir_ / "fewer"});
  const auto run_in = [&](const std::string& store, const config::Config& of, size_t held_out) {
    ConfiguredRunOptions options;
    options.store = dir_ / store;
    options.held_out.files = held_out;
    auto run = RunConfigured(of, options);
    EXPECT_TRUE(run) << run.error().message;
    return *std::move(run);
  };
  config::Config fewer = config;
  fewer.source.files.resize(2);
  const ConfiguredRun held = run_in("held", config, 2), without = run_in("fewer", fewer, 0);
  EXPECT_THAT(held.tables, HasSubstr("held"));
  ASSERT_EQ(held.learners.size(), 3u);
  for (size_t i = 0; i < held.learners.size(); ++i) {
    const auto& days = held.learners[i].days;
    ASSERT_EQ(days.size(), 4u) << held.learners[i].id;
    for (size_t day = 0; day < days.size(); ++day) {
      EXPECT_EQ(days[day].held_out, day >= 2);
      EXPECT_EQ(days[day].steps > 0, day < 2);
      EXPECT_EQ(days[day].name, fmt::format("day-{}.jsonl", day));
      if (day < 2) continue;
      // After three days everybody has had every item of the circle, and nothing is left to ask.
      if (!held.learners[i].recommends) {
        EXPECT_EQ(days[day].events, uint64_t{kShopClicks} * kShopUsers);
      } else if (held.learners[i].id == "counts") {
        EXPECT_EQ(days[day].ranked.asked, day == 2 ? kShopUsers : 0u);
      }
    }
    EXPECT_EQ(held.learners[i].epsilon, without.learners[i].epsilon);
  }
  config::Config a = fewer, b = fewer;
  a.store.witness = b.store.witness = "none";
  a.store.path = dir_ / "held";
  b.store.path = dir_ / "fewer";
  ExpectTheSame(ReadLearnt(Assembled(a)), ReadLearnt(Assembled(b)));
}

// This program's noise is none, so that the model without privacy is the one of its epsilon. The
// transformer's crops go by users' keys, which are each store's own.
TEST(ConfiguredRun, WithoutPrivacyItHasThePeriodsConstantsAndRowsOfItsEpsilon) {
  const TempDir dir;
  WriteCircle(dir);
  const config::Config config = Loaded(WriteShopConfig(dir, true, "all"));
  ConfiguredRunOptions options;
  options.store = dir / "store";
  options.held_out.files = 1;
  options.without_privacy = true;
  const auto run = RunConfigured(config, options);
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->learners.size(), 3u);
  for (const wiring::LearnerDays& learner : run->learners) {
    ASSERT_EQ(learner.plain.size(), learner.days.size());
    for (size_t day = 0; day < learner.days.size(); ++day) {
      const train::DayRow &plain = learner.plain[day], &own = learner.days[day];
      EXPECT_EQ(plain.held_out, own.held_out);
      EXPECT_EQ(plain.events, own.events);
      EXPECT_EQ(plain.steps, own.steps) << learner.id;
      EXPECT_EQ(plain.ranked.asked, own.ranked.asked) << learner.id;
      if (learner.id == "next") continue;
      EXPECT_EQ(plain.rows_written, own.rows_written) << learner.id;
      EXPECT_NEAR(plain.loss_sum, own.loss_sum, 1e-3 * own.loss_sum) << learner.id;
      EXPECT_NEAR(plain.ranked.model.gain, own.ranked.model.gain, 1e-3) << learner.id;
    }
  }
  EXPECT_THAT(run->tables, HasSubstr("Nothing of that model is kept"));
}

// A step of several files need not end at the end of the records learnt from: each row has the
// records of its own part, and rows sum to the records.
TEST(ConfiguredRun, ARowHeldOutHasNoRecordThatWasLearntFrom) {
  const TempDir dir;
  WriteCircle(dir);
  config::Config config = Loaded(WriteShopConfig(dir, false, "all"));
  std::erase_if(config.learners, [](const config::Learner& one) { return one.id != "ctr"; });
  config.learners[0].participation.batch = 100'000;
  config.learners[0].participation.step_files = 2;
  config.source.files.resize(4);
  const uint64_t all = 4 * uint64_t{kShopClicks} * kShopUsers;
  for (const double percent : {10.0, 30.0, 60.0}) {
    ConfiguredRunOptions options;
    options.store = dir / fmt::format("held-{}", percent);
    options.held_out.percent = percent;
    const auto run = RunConfigured(config, options);
    ASSERT_TRUE(run) << run.error().message;
    uint64_t learnt = 0, held_out = 0;
    for (const train::DayRow& day : run->learners[0].days) {
      (day.held_out ? held_out : learnt) += day.events;
      EXPECT_EQ(day.steps > 0, !day.held_out) << percent;
    }
    EXPECT_EQ(held_out, static_cast<uint64_t>(static_cast<double>(all) * percent / 100));
    EXPECT_EQ(learnt + held_out, all) << percent;
    EXPECT_EQ(run->learners[0].judged->events, held_out);
  }
}

TEST(ConfiguredRun, WhatCannotBeHeldOutIsNamed) {
  const TempDir dir;
  WriteCircle(dir);
  const config::Config config = Loaded(WriteShopConfig(dir, true, "all"));
  ConfiguredRunOptions options;
  options.store = dir / "store";
  options.held_out.files = kShopDays;
  const auto all = RunConfigured(config, options);
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("nothing would be left to learn from"));
  EXPECT_FALSE(fs::exists(options.store));
  // A file of two names would be learnt from, and judged by.
  config::Config twice = config;
  fs::create_symlink(fs::absolute(config.source.files.front()), dir / "again.jsonl");
  twice.source.files.push_back(dir / "again.jsonl");
  options.held_out.files = 1;
  const auto same = RunConfigured(twice, options);
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("again.jsonl: is the same file as "));
  // So would be a copy.
  fs::remove(dir / "again.jsonl");
  fs::copy_file(config.source.files.front(), dir / "again.jsonl");
  for (const HeldOut& held_out : {HeldOut{.files = 1}, HeldOut{.percent = 20}}) {
    options.held_out = held_out;
    const auto copy = RunConfigured(twice, options);
    ASSERT_FALSE(copy);
    EXPECT_THAT(copy.error().message, HasSubstr("again.jsonl: has the lines of "));
  }
  options.held_out = {.percent = 1e-6};
  const auto none = RunConfigured(config, options);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("not one would be held out"));
  // A header is no record.
  test::WriteFile(dir / "few.csv", "label,x\n1,2\n0,3\n");
  config::Config few = config;
  few.source.format = config::FormatKind::kCsv;
  few.source.files = {dir / "few.csv"};
  options.held_out = {.percent = 40};
  const auto two = RunConfigured(few, options);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("of 2 records not one would be held out"));
}

// A share of the records is held out as files of the same records are.
TEST(ConfiguredRun, AShareOfOneFileIsHeldOutAsAFileOfThoseRecordsIs) {
  const TempDir dir;
  WriteCircle(dir);
  config::Config parts = Loaded(WriteShopConfig(dir, false, "all"));
  MakeStores(Assembled(parts), {dir / "a", dir / "b"});  // of the same keys
  ASSERT_GE(parts.source.files.size(), 3u);
  parts.source.files.resize(3);
  std::string all;
  for (const std::string& file : parts.source.files) all += test::ReadFile(file);
  test::WriteFile(dir / "all.jsonl", all);
  // Two files to learn from, and the third held out; against one file, whose last third is. The
  // learners' own cuts at the end of a file would differ, so the first two are one file as well.
  test::WriteFile(dir / "first.jsonl",
                  test::ReadFile(parts.source.files[0]) + test::ReadFile(parts.source.files[1]));
  config::Config whole = parts;
  whole.source.files = {dir / "all.jsonl"};
  parts.source.files = {dir / "first.jsonl", parts.source.files[2]};
  ConfiguredRunOptions by_file, by_share;
  by_file.store = dir / "a";
  by_file.held_out.files = 1;
  by_share.store = dir / "b";
  by_share.held_out.percent = 100.0 / 3 + 1e-9;
  const auto a = RunConfigured(parts, by_file), b = RunConfigured(whole, by_share);
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  ASSERT_EQ(a->learners.size(), b->learners.size());
  for (size_t i = 0; i < a->learners.size(); ++i) {
    ASSERT_EQ(a->learners[i].days.size(), 2u);
    ASSERT_EQ(b->learners[i].days.size(), 2u) << a->learners[i].id;
    for (size_t day = 0; day < 2; ++day) {
      const train::DayRow &x = a->learners[i].days[day], &y = b->learners[i].days[day];
      EXPECT_EQ(y.held_out, day == 1);
      EXPECT_EQ(x.events, y.events) << a->learners[i].id;
      EXPECT_EQ(x.steps, y.steps) << a->learners[i].id;
      EXPECT_EQ(x.loss_sum, y.loss_sum) << a->learners[i].id;
      EXPECT_EQ(x.ranked.asked, y.ranked.asked) << a->learners[i].id;
      EXPECT_EQ(x.ranked.model.gain, y.ranked.model.gain) << a->learners[i].id;
    }
  }
}

// Every cut of a log into two parts has all its records, faults and cuts once, at their offsets.
TEST(PartOfLog, TwoPartsAreTheLog) {
  const TempDir dir;
  test::WriteFile(dir / "a.tsv", "1\n\n2\n");
  test::WriteFile(dir / "b.tsv", "3\n" + std::string(2000, 'x') + "\n4\n5");
  test::WriteFile(dir / "c.tsv", "");
  test::WriteFile(dir / "d.tsv", "6\n");
  const auto open = [&] {
    auto log = stream::OpenLogSource(
        {.files = {dir / "a.tsv", dir / "b.tsv", dir / "c.tsv", dir / "d.tsv"},
         .max_record_bytes = 1000,
         .records_per_poll = 2});
    EXPECT_TRUE(log) << log.error().message;
    return *std::move(log);
  };
  // A line for each record, fault and cut, in order.
  const auto read = [](stream::Source& source) {
    std::vector<std::string> lines;
    event::RawRecords records;
    for (;;) {
      const auto outcome = source.Poll(std::chrono::milliseconds(10), &records);
      if (!outcome || *outcome == stream::PollOutcome::kEnd) return lines;
      size_t fault = 0, cut = 0;
      for (size_t i = 0; i <= records.size(); ++i) {
        const uint64_t offset = records.first_offset + i;
        for (; cut < records.cuts.size() && records.cuts[cut].offset <= offset; ++cut)
          lines.push_back(fmt::format("cut {} {}", offset, records.cuts[cut].name));
        if (i == records.size()) break;
        const bool bad = fault < records.faults.size() && records.faults[fault].index == i;
        lines.push_back(fmt::format("{} {} {}:{} {}", offset, records[i], records.origin,
                                    records.origin_line + i,
                                    bad ? records.faults[fault++].reason : ""));
      }
    }
  };
  const auto whole = open();
  const std::vector<std::string> expected = read(*whole);
  uint64_t files = 0;
  const uint64_t records = *CountOffsets(*open(), &files);
  EXPECT_EQ(records, 8u);
  EXPECT_EQ(files, 3u) << "one has no line";
  for (uint64_t at = 0; at <= records; ++at) {
    const auto first = PartOfLog(open(), 0, at), rest = PartOfLog(open(), at, records);
    std::vector<std::string> both = read(*first), wanted = expected;
    const std::vector<std::string> more = read(*rest);
    both.insert(both.end(), more.begin(), more.end());
    // The first part ends as a file does, once, also where an empty file follows.
    const auto here = fmt::format("cut {} ", at);
    const auto is_here = [&](const std::string& line) { return line.starts_with(here); };
    EXPECT_EQ(std::ranges::count_if(both, is_here), at > 0 ? 1 : 0) << at;
    std::erase_if(both, is_here);
    std::erase_if(wanted, is_here);
    EXPECT_EQ(both, wanted) << at;
  }
}

}  // namespace
}  // namespace tacit::lab
