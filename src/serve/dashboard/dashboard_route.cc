#include "serve/dashboard/dashboard_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/clock.h"
#include "base/text.h"
#include "http/query_fields.h"
#include "serve/dashboard/figures_json.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

template <class... Args>
void AddJson(std::string* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
}

struct AskedFigures {
  bool figures = false;
  LookBack back = LookBack::kMinutes;
};

Result<AskedFigures> ParseAskedFigures(std::string_view query) {
  AskedFigures asked;
  TACIT_RETURN_IF_ERROR(
      http::ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name == "figures" && (value == "all" || value == "public")) {
          asked.figures = value == "all";
          return {};
        }
        constexpr std::string_view kNames[kLookBacks] = {"minutes", "hours", "day"};
        const auto back = std::ranges::find(kNames, std::string_view(value));
        if (name == "back" && back != std::end(kNames)) {
          asked.back = static_cast<LookBack>(back - std::begin(kNames));
          return {};
        }
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("there is figures=all or public, and back=minutes, hours or day, "
                                "not '{}={}'",
                                name.substr(0, 40), value.substr(0, 40)));
      }));
  return asked;
}

std::string_view KindName(privacy::Forecast::Kind kind) {
  using Kind = privacy::Forecast::Kind;
  switch (kind) {
    case Kind::kNoBudget:
      return "no_budget";
    case Kind::kNothingSpent:
      return "nothing_spent";
    case Kind::kTooLittleHistory:
      return "too_little_history";
    case Kind::kConstant:
      return "constant";
    case Kind::kBounded:
      return "bounded";
    case Kind::kExhausted:
      return "exhausted";
    case Kind::kRunsOut:
      return "runs_out";
    case Kind::kBeyondHorizon:
      break;
  }
  return "beyond_a_century";
}

void AppendPoints(std::string_view name, const std::vector<SpentPoint>& points, std::string* out) {
  AddJson(out, R"("{}":[)", name);
  for (const SpentPoint& point : points) {
    AddJson(out, "{}[{},{},", &point == &points.front() ? "" : ",", point.time_ms, point.steps);
    AppendNumber(point.epsilon, out);
    *out += ']';
  }
  *out += ']';
}

// Appends "curve":null before it was found.
void AppendCurve(const BudgetCurve* curve, std::string* out) {
  *out += R"("curve":)";
  if (curve == nullptr) {
    *out += "null";
    return;
  }
  const privacy::Forecast& forecast = curve->forecast;
  AddJson(out, R"({{"forecast":"{}","runs_out_ms":)", KindName(forecast.kind));
  if (forecast.kind == privacy::Forecast::Kind::kRunsOut)
    AddJson(out, "{}", forecast.runs_out_ms);
  else
    *out += "null";
  *out += R"(,"most":)";
  AppendNumber(forecast.most > 0 ? forecast.most : INFINITY, out);
  *out += ',';
  AppendPoints("spent", curve->spent, out);
  *out += ',';
  AppendPoints("ahead", curve->ahead, out);
  *out += '}';
}

void AppendCheckpoints(const std::optional<CheckpointCommands>& commands, std::string* out) {
  *out += R"("checkpoints":)";
  if (!commands) {
    *out += "null";
    return;
  }
  const auto report = commands->report();
  if (!report) {
    *out += "null";
    return;
  }
  constexpr size_t kNewest = 8;
  const auto& places = report->places;
  *out += '[';
  for (size_t i = places.size(); i > 0 && places.size() - i < kNewest; --i) {
    if (i < places.size()) *out += ',';
    AppendCheckpoint(places[i - 1], out);
  }
  *out += ']';
}

}  // namespace

void DashboardRoute::AppendBudgets(const store::Snapshot& snapshot, const Budgets* budgets,
                                   std::string* out) const {
  *out += R"("learners":[)";
  bool all_private = true;
  for (size_t i = 0; i < learners_.size(); ++i) {
    const privacy::Promise& promise = learners_[i].promise;
    const privacy::LedgerTotal total = TotalOf(snapshot, promise);
    all_private = all_private && IsPrivate(total);
    *out += i == 0 ? R"({"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(promise.learner, out);
    AddJson(out, R"(,"unit":"{}","participation":"{}","private":{},"steps":{},)",
            privacy::Name(promise.unit), privacy::Name(promise.participation), IsPrivate(total),
            total.steps);
    AppendLoss(total, out);
    *out += R"(,"budget":)";
    AppendNumber(promise.epsilon, out);
    AddJson(out, R"(,"allowance":{},)", promise.bounds.allowance);
    AppendStoppedBy(services_.spent(learners_[i].index), out);
    *out += ',';
    AppendAtMost(total, out);
    *out += ',';
    AppendCurve(budgets == nullptr ? nullptr : &budgets->learners[i], out);
    *out += '}';
  }
  *out += R"(],"retired":[)";
  bool first = true;
  for (const privacy::LedgerTotal& total : snapshot.learners()) {
    const bool configured = std::ranges::any_of(
        learners_, [&](const ServedLearner& l) { return l.promise.learner == total.learner; });
    if (configured || total.steps == 0) continue;
    *out += std::exchange(first, false) ? R"({"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(total.learner, out);
    AddJson(out, R"(,"unit":"{}","steps":{},)", privacy::Name(total.unit), total.steps);
    AppendLoss(total, out);
    *out += '}';
  }
  privacy::LedgerTotal total = snapshot.total();
  if (!all_private) total.epsilon = INFINITY;
  AddJson(out, R"(],"total":{{"unit":"{}","private":{},)", privacy::Name(total.unit), all_private);
  AppendLoss(total, out);
  *out += R"(,"budget":)";
  AppendNumber(services_.total_budget ? services_.total_budget->epsilon : INFINITY, out);
  *out += ',';
  AppendAtMost(total, out);
  *out += ',';
  AppendCurve(budgets == nullptr ? nullptr : &budgets->total, out);
  *out += '}';
}

void DashboardRoute::AppendVersions(const store::Snapshot& snapshot, const Budgets* budgets,
                                    std::string* out) const {
  AddJson(out, R"("versions":{{"version":{},"head":"sha256:{}","entries":{},"lineage":)",
          snapshot.version().value, ToHex(snapshot.head()), snapshot.ledger_entries());
  http::AppendJsonString(snapshot.lineage(), out);
  *out += R"(,"code":)";
  http::AppendJsonString(services_.code_version, out);
  *out += R"(,"learnt_by":[)";
  if (budgets != nullptr)
    for (const Budgets::Code& code : budgets->code_versions) {
      *out += &code == &budgets->code_versions.front() ? R"({"code":)" : R"(,{"code":)";
      http::AppendJsonString(code.version, out);
      AddJson(out, R"(,"commit":{},"time_ms":{}}})", code.first_commit, code.first_ms);
    }
  *out += "],";
  AppendCheckpoints(services_.checkpoints, out);
  *out += '}';
}

void DashboardRoute::Answer(const std::shared_ptr<const store::Snapshot>& snapshot,
                            std::string_view query, const Health& health,
                            http::Reply* reply) const {
  const Result<AskedFigures> asked = ParseAskedFigures(query);
  if (!asked) return http::SetFailure(asked.error(), reply);
  const auto budgets = board_->Look(snapshot);
  const DashboardSource& source = services_.dashboard;
  std::string& out = reply->body;
  AddJson(&out, R"({{"time_ms":{},"state":{{"activity":)", SystemClock().UnixMillis());
  http::AppendJsonString(source.activity ? source.activity() : "serving", &out);
  AddJson(&out, R"(,"ready":{},"why":)", health.ready.has_value());
  const Status& ready = asked->figures ? health.ready : health.ready_for_all;
  const std::string& degraded = asked->figures ? health.degraded : health.degraded_for_all;
  http::AppendJsonString(ready ? degraded : ready.error().message, &out);
  AddJson(&out, R"(}},"last_commit_ms":{},"budgets_of":)", budgets ? budgets->last_ms : 0);
  if (budgets)
    AddJson(&out, "{}", budgets->version.value);
  else
    out += "null";
  out += R"(,"budgets_failed":)";
  http::AppendJsonString(budgets ? budgets->failure : "", &out);
  out += ',';
  AppendBudgets(*snapshot, budgets.get(), &out);
  out += ',';
  AppendVersions(*snapshot, budgets.get(), &out);
  out += R"(,"learns":)";
  out += source.figures ? "true" : "false";
  out += R"(,"figures":)";
  if (asked->figures && source.figures)
    AppendFigures(source.figures(asked->back), &out);
  else
    out += "null";
  out += "}\n";
  reply->headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace tacit::serve
