#include "serve/routes/privacy_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "http/http.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

template <class... Args>
void Append(std::string* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
}

void AppendLearner(const store::Snapshot& snapshot, const ServedLearner& learner,
                   privacy::Spent spent, std::string* out) {
  const privacy::Promise& promise = learner.promise;
  const privacy::LedgerTotal total = TotalOf(snapshot, promise);
  *out += R"({"learner":)";
  http::AppendJsonString(promise.learner, out);
  Append(out, R"(,"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, out);
  Append(out, R"(,"steps":{},"private":{},"budget":{{"epsilon":)", total.steps, IsPrivate(total));
  AppendNumber(promise.epsilon, out);
  Append(out, R"(,"exhausted":{}}},)", spent == privacy::Spent::kOwn);
  AppendStoppedBy(spent, out);
  Append(out, R"(,"participation":"{}","adjacency":"{}","neighbours":"{}")",
         privacy::Name(promise.participation), privacy::Name(promise.adjacency),
         privacy::InWords(promise.adjacency, promise.unit));
  AppendBounds(promise.bounds, out);
  *out += ',';
  AppendAtMost(total, out);
  *out += '}';
}

// Appends learners that were charged but are no longer configured, or configured under another
// name. Their releases remain public, so the total includes them.
void AppendRetired(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                   std::string* out) {
  const size_t begin = out->size();
  for (const privacy::LedgerTotal& total : snapshot.learners()) {
    const bool configured = std::ranges::any_of(
        learners, [&](const ServedLearner& l) { return l.promise.learner == total.learner; });
    if (configured || total.steps == 0) continue;
    *out += out->size() == begin ? R"(,"retired":[{"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(total.learner, out);
    Append(out, R"(,"unit":"{}",)", privacy::Name(total.unit));
    AppendLoss(total, out);
    Append(out, R"(,"steps":{},)", total.steps);
    AppendAtMost(total, out);
    *out += '}';
  }
  if (out->size() != begin) *out += ']';
}

}  // namespace

std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                        const std::function<privacy::Spent(LearnerIndex)>& spent,
                        const std::optional<privacy::TotalBudget>& total_budget) {
  std::string out = R"({"learners":[)";
  bool all_private = true;
  for (const ServedLearner& learner : learners) {
    if (&learner != &learners.front()) out += ",";
    AppendLearner(snapshot, learner, spent ? spent(learner.index) : privacy::Spent::kNone, &out);
    all_private = all_private && IsPrivate(TotalOf(snapshot, learner.promise));
  }
  out += ']';
  AppendRetired(snapshot, learners, &out);
  privacy::LedgerTotal total = snapshot.total();
  if (!all_private) total.epsilon = INFINITY;
  Append(&out, R"(,"total":{{"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, &out);
  out += ',';
  AppendAtMost(total, &out);
  if (total_budget)
    Append(&out, R"(,"budget":{{"epsilon":{},"delta":{}}})", total_budget->epsilon,
           total_budget->delta);
  Append(&out, R"(}},"entries":{},"head":"{}","version":{},"lineage":)", snapshot.ledger_entries(),
         "sha256:" + ToHex(snapshot.head()), snapshot.version().value);
  http::AppendJsonString(snapshot.lineage(), &out);
  out += "}\n";
  return out;
}

void WriteUserPrivacy(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                      std::string_view id, const UserReport& report, std::string* out) {
  *out = R"({"user":)";
  http::AppendJsonString(id, out);
  *out += R"(,"learners":[)";
  for (const ServedLearner& learner : learners) {
    const privacy::LedgerTotal total = TotalOf(snapshot, learner.promise);
    *out += &learner == &learners.front() ? R"({"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(learner.promise.learner, out);
    Append(out, R"(,"unit":"{}","adjacency":"{}","neighbours":"{}",)", privacy::Name(total.unit),
           privacy::Name(learner.promise.adjacency),
           privacy::InWords(learner.promise.adjacency, learner.promise.unit));
    AppendLoss(total, out);
    Append(out, R"(,"private":{},)", IsPrivate(total));
    AppendAtMost(total, out);
    const auto used = std::ranges::find(report.allowances, learner.promise.learner,
                                        &UserReport::Allowance::learner);
    if (used != report.allowances.end())
      Append(out, R"(,"allowance":{{"used":{},"of":{}}})", used->used, used->most);
    *out += '}';
  }
  Append(out, R"(],"opted_out":{},"version":{},"head":"sha256:{}"}})", report.opted_out,
         snapshot.version().value, ToHex(snapshot.head()));
  *out += '\n';
}

}  // namespace tacit::serve
