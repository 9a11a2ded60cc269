#include "serve/dashboard/figures_json.h"

#include <fmt/format.h>

#include <iterator>

#include "base/interval.h"
#include "http/http.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

template <class... Args>
void WriteJson(std::string* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
}

void AppendSamples(const OperatorFigures& figures, std::string* out) {
  WriteJson(out,
            R"("samples":{{"every_ms":{},"columns":["time_ms","read","dead","learnt","ahead",)",
            figures.every_ms);
  *out += R"("commits"],"rows":[)";
  for (const StreamSample& s : figures.samples)
    WriteJson(out, "{}[{},{},{},{},{},{}]", &s == &figures.samples.front() ? "" : ",", s.time_ms,
              s.read, s.dead, s.learnt, s.ahead, s.commits);
  *out += "]}";
}

void AppendQuality(const std::vector<QualityFigures>& quality, std::string* out) {
  *out += R"("quality":[)";
  for (const QualityFigures& q : quality) {
    WriteJson(out, R"({}{{"events":{},"clicks":{},"loss_sum":)", &q == &quality.front() ? "" : ",",
              q.events, q.clicks);
    AppendNumber(q.loss_sum, out);
    *out += R"(,"predicted":)";
    AppendNumber(q.predicted, out);
    WriteJson(out, R"(,"asked":{},"hits":{},"popular_hits":{},"successor_hits":{},"gain":)",
              q.asked, q.hits, q.popular_hits, q.successor_hits);
    AppendNumber(q.gain, out);
    const Interval hit = ShareInterval(static_cast<double>(q.hits), static_cast<double>(q.asked));
    *out += R"(,"hit_low":)";
    AppendNumber(hit.low, out);
    *out += R"(,"hit_high":)";
    AppendNumber(hit.high, out);
    WriteJson(out, R"(,"first_ms":{},"last_ms":{}}})", q.first_ms, q.last_ms);
  }
  *out += ']';
}

void AppendUsers(const LearnerFigures& learner, std::string* out) {
  *out += R"("users":)";
  if (!learner.users) {
    *out += "null";
    return;
  }
  const privacy::AllowancesLeft& left = *learner.users;
  WriteJson(out, R"({{"counted_ms":{},"users":{},"none":{},"quarters":[{},{},{},{}]}})",
            learner.users_counted_ms, left.users, left.none, left.quarters[0], left.quarters[1],
            left.quarters[2], left.quarters[3]);
}

void AppendLearnerFigures(const LearnerFigures& learner, std::string* out) {
  *out += R"({"learner":)";
  http::AppendJsonString(learner.learner, out);
  WriteJson(out, R"(,"recommends":{},"auc":)", learner.recommends);
  AppendNumber(learner.auc, out);
  *out += R"(,"auc_low":)";
  AppendNumber(learner.auc_low, out);
  *out += R"(,"auc_high":)";
  AppendNumber(learner.auc_high, out);
  *out += ',';
  AppendQuality(learner.quality, out);
  WriteJson(out,
            R"(,"seconds":{{"account":{:.6f},"learn":{:.6f},"observe":{:.6f}}},"steps":{},)"
            R"("examples":{},"units":{},"units_clipped":{},"came":{{"users":{},)"
            R"("users_left_out":{},"records":{},"records_left_out":{}}},"rows_touched":{},)"
            R"("rows_written":{},"cache":{{"hits":{},"misses":{},"read_ahead":{},"evictions":{},)"
            R"("bytes":{}}},)",
            learner.account_seconds, learner.learn_seconds, learner.observe_seconds, learner.steps,
            learner.examples, learner.units, learner.units_clipped, learner.came.users,
            learner.came.users_left_out, learner.came.records, learner.came.records_left_out,
            learner.rows_touched, learner.rows_written, learner.cache_hits, learner.cache_misses,
            learner.cache_read_ahead, learner.cache_evictions, learner.cache_bytes);
  AppendUsers(learner, out);
  *out += '}';
}

}  // namespace

void AppendFigures(const OperatorFigures& figures, std::string* out) {
  *out += '{';
  AppendSamples(figures, out);
  WriteJson(out, R"(,"records":{{"read":{},"dead":{},"good":{},"ahead":{}}},"source_alert":)",
            figures.read, figures.dead, figures.good, figures.ahead);
  http::AppendJsonString(figures.source_alert, out);
  *out += R"(,"dead_letters":[)";
  for (const OperatorFigures::DeadLetters& letters : figures.dead_letters) {
    *out += &letters == &figures.dead_letters.front() ? R"({"part":)" : R"(,{"part":)";
    http::AppendJsonString(letters.part, out);
    WriteJson(out, R"(,"records":{}}})", letters.records);
  }
  WriteJson(out,
            R"(],"wait_seconds":{:.6f},"commit_seconds":{:.6f},"last_commit_seconds":{:.6f},)"
            R"("steps_queued":{},"unfolded_deltas":{},"learners":[)",
            figures.wait_seconds, figures.commit_seconds, figures.last_commit_seconds,
            figures.steps_queued, figures.unfolded_deltas);
  for (const LearnerFigures& learner : figures.learners) {
    if (&learner != &figures.learners.front()) *out += ',';
    AppendLearnerFigures(learner, out);
  }
  *out += "]}";
}

}  // namespace tacit::serve
