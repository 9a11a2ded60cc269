#include "lab/audit/audit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "console/terminal_line.h"
#include "lab/audit/likelihood_audit.h"
#include "lab/run_store.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

// The runs of one learner that are in the state file.
class KeptRuns {
 public:
  KeptRuns(const AuditRunOptions& options, std::string learner)
      : path_(options.state), learner_(std::move(learner)) {
    key_ = ToHex(Sha256()
                     .Update("tacit audit 1 ")
                     .Update(options.key)
                     .Update(fmt::format(" {}", options.runs))
                     .Finish());
  }

  Status Read(audit::RunStatistics* runs) const {
    if (path_.empty()) return {};
    return ReadRunLines(path_, [&](const std::string& line) -> Status {
      try {
        const json::value part = json::parse(line);
        if (part.at("key").as_string() != key_)
          return Fail(ErrorCode::kRefused,
                      "these runs are of another configuration, or of another --runs: name another "
                      "--state, or delete this one");
        if (part.at("id").as_string() != learner_) return {};
        for (const auto& [name, to] :
             {std::pair{"without", &runs->without}, std::pair{"with", &runs->with}})
          for (const json::value& number : part.at(name).as_array())
            to->push_back(number.to_number<double>());
        return {};
      } catch (const std::exception& e) {
        return Fail(ErrorCode::kCorruption, std::string("not a part of an audit: ") + e.what());
      }
    });
  }

  Status Add(const audit::RunStatistics& part) const {
    if (path_.empty()) return {};
    return AppendRunLine(
        path_, json::serialize(
                   json::object{{"id", learner_},
                                {"key", key_},
                                {"without", json::array(part.without.begin(), part.without.end())},
                                {"with", json::array(part.with.begin(), part.with.end())}}));
  }

 private:
  const std::string path_, learner_;
  std::string key_;
};

// Makes the runs that are left. Returns false if it was stopped before the last one.
Result<bool> MakeAuditRuns(LikelihoodAudit& made, const std::string& learner,
                           const AuditRunOptions& options, audit::RunStatistics* runs) {
  const KeptRuns kept(options, learner);
  TACIT_RETURN_IF_ERROR(kept.Read(runs));
  if (runs->without.size() != runs->with.size() || runs->with.size() > options.runs)
    return Fail(
        ErrorCode::kCorruption,
        fmt::format("{}: {} and {} runs of learner '{}', which are to be {} each", options.state,
                    runs->without.size(), runs->with.size(), learner, options.runs));
  const SystemClock clock;
  console::TerminalLine line(clock);
  const uint64_t each = std::max<uint64_t>(options.workers, options.runs / 200);
  while (runs->with.size() < options.runs) {
    if (options.stop && options.stop()) break;
    if (options.show_progress && line.due()) {
      const uint64_t done = runs->with.size();
      line.Draw(fmt::format(
          "{} {} {} of {} runs", learner,
          console::ProgressBar(static_cast<double>(done) / static_cast<double>(options.runs)),
          WithThousands(done), WithThousands(options.runs)));
    }
    audit::RunStatistics part;
    TACIT_RETURN_IF_ERROR(made.Run(std::min(each, options.runs - runs->with.size()), &part));
    TACIT_RETURN_IF_ERROR(kept.Add(part));
    runs->without.insert(runs->without.end(), part.without.begin(), part.without.end());
    runs->with.insert(runs->with.end(), part.with.begin(), part.with.end());
  }
  if (options.show_progress) line.End();
  return runs->with.size() == options.runs;
}

}  // namespace

bool AuditReport::exceeds() const {
  return std::ranges::any_of(audited, [](const AuditedLearner& l) { return l.judged.exceeds; });
}

Result<AuditReport> RunAudits(const config::Config& config, const AuditRunOptions& options) {
  AuditReport report;
  report.alpha = options.alpha;
  std::vector<std::string> ids = options.learners;
  if (ids.empty())
    for (const config::Learner& learner : config.learners) ids.push_back(learner.id);
  std::vector<std::pair<std::string, std::unique_ptr<LikelihoodAudit>>> audits;
  for (const std::string& id : ids) {
    auto made = LikelihoodAudit::Make(config, id, {.workers = options.workers});
    if (made) {
      audits.emplace_back(id, *std::move(made));
    } else if (options.learners.empty() && made.error().code == ErrorCode::kRefused) {
      report.refused.push_back({id, made.error().message});
    } else {
      return Fail(std::move(made.error()));
    }
  }
  // Every bound that is printed has its part of the error, those not yet made included.
  const double alpha = options.alpha / static_cast<double>(std::max<size_t>(1, audits.size()));
  for (const auto& [id, made] : audits) {
    audit::RunStatistics runs;
    TACIT_ASSIGN(const bool whole, MakeAuditRuns(*made, id, options, &runs));
    if (!whole) {
      report.stopped = true;
      break;
    }
    TACIT_ASSIGN(const audit::JudgedRuns judged,
                 audit::JudgeRuns(runs, options.runs / 10, made->events(), made->delta(), alpha));
    report.audited.push_back({.id = id,
                              .run = made->run_text(),
                              .runs = options.runs,
                              .reach = made->reach(),
                              .judged = judged,
                              .losses = {}});
  }
  return report;
}

}  // namespace tacit::lab
