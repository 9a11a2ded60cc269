#include "lab/configured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <cmath>
#include <thread>
#include <utility>

#include "base/files/log.h"
#include "base/files/standard_input.h"
#include "base/text.h"
#include "console/terminal_line.h"
#include "lab/part_of_log.h"
#include "lab/passing_folder.h"
#include "lab/silent_noise.h"
#include "stream/log/copies.h"
#include "wiring/day_table.h"
#include "wiring/learning.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/source.h"
#include "wiring/source_check.h"

namespace tacit::lab {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook(100);

// Logs the first dead letters; the rest are counted by the intake.
class ToldLetters final : public event::DeadLetterSink {
 public:
  explicit ToldLetters(size_t told) : left_(told) {}
  Status Write(std::span<const event::DeadLetter> letters) override {
    for (const event::DeadLetter& letter : letters.first(std::min(letters.size(), left_)))
      spdlog::warn("{}:{}: {}", letter.origin, letter.line, letter.reason);
    left_ -= std::min(letters.size(), left_);
    return {};
  }

 private:
  size_t left_;
};

// A source in two parts: to learn from, and to predict. Offsets are of the log, or, where whole
// files are held out, of each part alone.
struct Parts {
  std::unique_ptr<stream::Source> learnt, held_out;  // held_out is null where nothing is
};

// Leaves `source` the files to learn from.
Result<Parts> OpenFiles(config::Source* source, size_t files) {
  if (files >= source->files.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--held-out {}: there are {}, and nothing would be left to learn from; "
                            "--held-out 20% holds out the last records",
                            files, Counted(source->files.size(), "file")));
  config::Source held_out = *source;
  const auto first = source->files.end() - static_cast<ptrdiff_t>(files);
  held_out.files.assign(first, source->files.end());
  source->files.erase(first, source->files.end());
  Parts parts;
  TACIT_ASSIGN(parts.learnt, wiring::OpenSource(*source));
  TACIT_ASSIGN(parts.held_out, wiring::OpenSource(held_out));
  return parts;
}

Result<Parts> OpenPercent(const config::Source& source, double percent) {
  TACIT_ASSIGN(const auto whole, wiring::OpenSource(source));
  uint64_t files = 0;
  TACIT_ASSIGN(const uint64_t offsets, CountOffsets(*whole, &files));
  const bool headers = source.format == config::FormatKind::kCsv && source.csv.header;
  const uint64_t records = offsets - (headers ? files : 0);
  const auto held = static_cast<uint64_t>(static_cast<double>(records) * percent / 100);
  if (held == 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--held-out {}%: of {} not one would be held out", percent,
                            Counted(records, "record")));
  TACIT_ASSIGN(auto learnt, wiring::OpenSource(source));
  TACIT_ASSIGN(auto held_out, wiring::OpenSource(source));
  return Parts{.learnt = PartOfLog(std::move(learnt), 0, offsets - held),
               .held_out = PartOfLog(std::move(held_out), offsets - held, offsets)};
}

Result<Parts> OpenParts(const HeldOut& held_out, config::Config* config) {
  config::Source* const source = &config->source;
  // The schemas of container files are found as they are read, and the codec needs them.
  if (source->format == config::FormatKind::kAvro)
    TACIT_RETURN_IF_ERROR(wiring::PlanReading(source, config->features));
  const bool holds_out = held_out.files > 0 || held_out.percent > 0;
  if (holds_out && (!source->traits().has_files || source->files.empty()))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--held-out: source.kind {} has no files to hold out{}", source->traits().name,
                    source->topic.empty() ? "" : ": topic " + source->topic));
  if (holds_out && IsStandardInput(source->files))
    return Fail(ErrorCode::kInvalidArgument,
                "--held-out: standard input comes once; write its records into a file");
  // A file of two names, or a copy, would be learnt from and judged by.
  if (holds_out) {
    TACIT_RETURN_IF_ERROR(wiring::OpenSource(*source));
    TACIT_RETURN_IF_ERROR(stream::CheckNoCopies(source->files));
  }
  if (held_out.files > 0) return OpenFiles(source, held_out.files);
  if (held_out.percent > 0) return OpenPercent(*source, held_out.percent);
  Parts parts;
  TACIT_ASSIGN(parts.learnt, wiring::OpenSource(*source));
  return parts;
}

boost::json::value Finite(double x) {
  return std::isfinite(x) ? boost::json::value(x) : boost::json::value(nullptr);
}

// Lists how a recommender placed the items that users took next.
boost::json::object ToJson(const train::RankTotals& ranked, const train::RankScore& score) {
  const Interval hit = ranked.HitInterval(score);
  return {{"hits", score.hits},
          {"hit10_low", Finite(hit.low)},
          {"hit10_high", Finite(hit.high)},
          {"ndcg10", Finite(ranked.Ndcg(score))}};
}

// The figures of a day, or of a part of it.
boost::json::object ToJson(const train::PredictedFigures& figures, bool recommends) {
  boost::json::object row{{"events", figures.events}};
  if (recommends) {
    const train::RankTotals& ranked = figures.ranked;
    row["asked"] = ranked.asked;
    row["without_model"] = ranked.without_model;
    row["without_history"] = ranked.without_history;
    row["without_news"] = ranked.without_news;
    row["model"] = ToJson(ranked, ranked.model);
    row["popularity"] = ToJson(ranked, ranked.popular);
    row["successor"] = ToJson(ranked, ranked.successor);
    return row;
  }
  const Interval auc = figures.AucInterval(), entropy = figures.EntropyInterval();
  row["auc"] = figures.auc;
  row["auc_low"] = Finite(auc.low);
  row["auc_high"] = Finite(auc.high);
  row["normalised_entropy"] = Finite(train::EntropyOf(figures));
  row["normalised_entropy_low"] = Finite(entropy.low);
  row["normalised_entropy_high"] = Finite(entropy.high);
  row["log_loss"] = Finite(figures.loss_sum / static_cast<double>(figures.events));
  return row;
}

boost::json::array ToJson(const std::vector<train::DayRow>& days, bool recommends) {
  boost::json::array rows;
  for (const train::DayRow& day : days) {
    boost::json::object row = ToJson(day, recommends);
    row["name"] = day.name;
    row["held_out"] = day.held_out;
    row["steps"] = day.steps;
    row["rows_written"] = day.rows_written;
    if (day.after_release) row["after_release"] = ToJson(*day.after_release, recommends);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A run at work, in the order it is built.
class RunAtWork {
 public:
  RunAtWork(const wiring::Assembly& assembly, const ConfiguredRunOptions& options, bool silent)
      : assembly_(assembly),
        options_(options),
        silent_(silent),
        progress_(assembly.learners.size()),
        letters_(silent ? 0 : 3) {}

  Result<ConfiguredRun> Learn(Parts parts) {
    source_ = std::move(parts.learnt);
    TACIT_RETURN_IF_ERROR(wiring::CheckFirstRecords(assembly_));
    store::StoreOptions store = wiring::MakeStoreOptions(assembly_);
    TACIT_ASSIGN(store_, store::Store::Open(std::move(store)));
    TACIT_ASSIGN(const auto positions, wiring::ReadPositions(assembly_, *store_));
    TACIT_ASSIGN(learning_, wiring::Learning::Make({.assembly = assembly_,
                                                    .store = *store_,
                                                    .source = *source_,
                                                    .dead_letters = letters_,
                                                    .clock = clock_,
                                                    .registry = registry_,
                                                    .progress = progress_,
                                                    .noise = silent_ ? Silenced : nullptr},
                                                   positions));
    TACIT_RETURN_IF_ERROR(learning_->intake().Start());
    TACIT_RETURN_IF_ERROR(Watched([this]() -> Status {
      TACIT_ASSIGN(const train::Outcome outcome,
                   learning_->trainer().Run(learning_->intake().steps()));
      stopped_ = outcome == train::Outcome::kStopped;
      if (outcome == train::Outcome::kBudgetExhausted || outcome == train::Outcome::kHalted)
        learning_->intake().Stop();
      return learning_->intake().status();
    }));
    if (parts.held_out != nullptr && !stopped_)
      TACIT_RETURN_IF_ERROR(Watched([&] { return learning_->PredictHeldOut(*parts.held_out); }));
    return Figures();
  }

 private:
  static std::unique_ptr<noise::NoiseSource> Silenced(std::unique_ptr<noise::NoiseSource> noise) {
    return std::make_unique<SilentNoise>(std::move(noise));
  }

  // Does the work on a thread of its own, and draws meanwhile how far it is.
  Status Watched(const std::function<Status()>& work) {
    Status status;
    std::atomic<bool> done = false;
    std::thread worker([&] {
      status = work();
      done = true;
    });
    console::TerminalLine line(clock_);
    while (!done) {
      if (options_.stop && options_.stop()) {
        stopped_ = true;
        learning_->trainer().RequestStop();
        learning_->intake().Stop();
        break;
      }
      const train::Intake& intake = learning_->intake();
      if (options_.show_progress && line.due())
        line.Draw(fmt::format("{} of {} records", WithThousands(intake.records_read()),
                              WithThousands(intake.records_read() + intake.records_ahead())));
      std::this_thread::sleep_for(kLook);
    }
    worker.join();
    if (options_.show_progress) line.End();
    return status;
  }

  ConfiguredRun Figures() const {
    return {
        .learners = wiring::LearntDays(assembly_, progress_, learning_->trainer().step_totals()),
        .tables = {},
        .records = learning_->intake().records_read(),
        .records_dead = learning_->intake().records_dead(),
        .stopped = stopped_};
  }

  const wiring::Assembly& assembly_;
  const ConfiguredRunOptions& options_;
  const bool silent_;
  SystemClock clock_;
  metrics::Registry registry_;
  train::Progress progress_;
  ToldLetters letters_;
  std::unique_ptr<stream::Source> source_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<wiring::Learning> learning_;
  std::atomic<bool> stopped_ = false;
};

// Learns without noise, in a passing store, and gives its figures to the learners of a run.
Status LearnWithoutPrivacy(config::Config config, const ConfiguredRunOptions& options,
                           ConfiguredRun* run) {
  TACIT_ASSIGN(const PassingFolder folder, PassingFolder::Make());
  config.store.path = folder.path() + "/store";
  // No configuration can have such learners: were the folder left behind, nothing would serve it.
  for (config::Learner& learner : config.learners) learner.id += ".without-privacy";
  TACIT_ASSIGN(Parts parts, OpenParts(options.held_out, &config));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  TACIT_ASSIGN(ConfiguredRun plain,
               RunAtWork(assembly, options, /*silent=*/true).Learn(std::move(parts)));
  run->stopped = plain.stopped;
  for (size_t i = 0; i < run->learners.size(); ++i) {
    run->learners[i].plain = std::move(plain.learners[i].days);
    run->learners[i].plain_judged = plain.learners[i].judged;
  }
  return {};
}

}  // namespace

Result<ConfiguredRun> RunConfigured(config::Config config, const ConfiguredRunOptions& options) {
  config.store.path = options.store;
  config.store.paths.clear();
  config.store.witness = "none";
  config.source.mark.clear();
  const config::Config again = config;
  TACIT_ASSIGN(Parts parts, OpenParts(options.held_out, &config));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  TACIT_ASSIGN(ConfiguredRun run,
               RunAtWork(assembly, options, /*silent=*/false).Learn(std::move(parts)));
  if (options.without_privacy && !run.stopped)
    TACIT_RETURN_IF_ERROR(LearnWithoutPrivacy(again, options, &run));
  run.tables = wiring::LearntTables(assembly, run.learners);
  return run;
}

boost::json::object ToJson(const ConfiguredRun& run) {
  boost::json::array learners;
  for (const wiring::LearnerDays& learner : run.learners) {
    boost::json::object row{{"id", learner.id},
                            {"epsilon", Finite(learner.epsilon)},
                            {"delta", learner.delta},
                            {"days", ToJson(learner.days, learner.recommends)},
                            {"verdict", wiring::Verdict(learner)}};
    if (learner.judged) row["judged"] = ToJson(*learner.judged, learner.recommends);
    if (!learner.plain.empty())
      row["days_without_privacy"] = ToJson(learner.plain, learner.recommends);
    if (learner.plain_judged)
      row["judged_without_privacy"] = ToJson(*learner.plain_judged, learner.recommends);
    learners.push_back(std::move(row));
  }
  return {{"learners", std::move(learners)},
          {"records", run.records},
          {"records_dead", run.records_dead}};
}

}  // namespace tacit::lab
