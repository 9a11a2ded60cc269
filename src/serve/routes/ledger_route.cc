#include "serve/routes/ledger_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "base/text.h"
#include "http/query_fields.h"

namespace tacit::serve {
namespace {

struct Page {
  uint64_t from = 0, count = kLedgerPageEntries;
};

Result<Page> ParseQuery(std::string_view query) {
  Page page;
  TACIT_RETURN_IF_ERROR(http::ForFields(query, [&](std::string_view name,
                                                   const std::string& value) {
    uint64_t* const to = name == "from" ? &page.from : name == "count" ? &page.count : nullptr;
    if (to == nullptr)
      return Status(Fail(ErrorCode::kInvalidArgument,
                         fmt::format("unknown parameter '{}' (there are from and count)", name)));
    const auto number = http::WholeNumber(name, value);
    if (!number) return Status(Fail(Error(number.error())));
    *to = *number;
    return Status();
  }));
  page.count = std::min(page.count, kLedgerPageEntries);
  return page;
}

// JSON has no infinity: an infinite budget is null.
void AppendBudget(double epsilon, double delta, std::string* out) {
  const std::string number = std::isfinite(epsilon) ? fmt::format("{}", epsilon) : "null";
  fmt::format_to(std::back_inserter(*out), R"("epsilon":{},"delta":{}}})", number, delta);
}

}  // namespace

void AppendBounds(const privacy::Bounds& bounds, std::string* out) {
  if (bounds == privacy::Bounds{}) return;
  fmt::format_to(std::back_inserter(*out),
                 R"(,"bounds":{{"allowance":{},"per_period":{},"period_steps":{},)"
                 R"("dedupe_window":{}}})",
                 bounds.allowance, bounds.per_period, bounds.period_steps, bounds.dedupe_window);
}

namespace {

void AppendPromises(const std::vector<ServedLearner>& learners, std::string* out) {
  for (const ServedLearner& learner : learners) {
    const privacy::Promise& promise = learner.promise;
    *out += &learner == &learners.front() ? R"({"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(promise.learner, out);
    fmt::format_to(std::back_inserter(*out),
                   R"(,"unit":"{}","adjacency":"{}","participation":"{}")",
                   privacy::Name(promise.unit), privacy::Name(promise.adjacency),
                   privacy::Name(promise.participation));
    AppendBounds(promise.bounds, out);
    *out += ',';
    AppendBudget(promise.epsilon, promise.delta, out);
  }
}

void AppendEntries(const std::vector<std::string>& entries, std::string* out) {
  const size_t begin = out->size();
  for (const std::string& entry : entries) {
    if (out->size() != begin && out->size() - begin + 2 * entry.size() > kLedgerPageBytes) return;
    *out += out->size() == begin ? "\"" : ",\"";
    *out += ToHex({reinterpret_cast<const uint8_t*>(entry.data()), entry.size()});
    *out += '"';
  }
}

}  // namespace

void AnswerLedger(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                  const std::optional<privacy::TotalBudget>& total_budget, std::string_view query,
                  http::Reply* reply) {
  const Result<Page> page = ParseQuery(query);
  if (!page) return http::SetError(400, page.error().message, reply);
  const auto entries = snapshot.LedgerEntries(page->from, page->count);
  if (!entries) return http::SetError(500, entries.error().message, reply);
  std::string& out = reply->body;
  out = fmt::format(R"({{"head":"sha256:{}","version":{},"lineage":)", ToHex(snapshot.head()),
                    snapshot.version().value);
  http::AppendJsonString(snapshot.lineage(), &out);
  out += R"(,"promises":[)";
  AppendPromises(learners, &out);
  out += R"(],"total_budget":)";
  if (total_budget) {
    out += '{';
    AppendBudget(total_budget->epsilon, total_budget->delta, &out);
  } else {
    out += "null";
  }
  fmt::format_to(std::back_inserter(out), R"(,"length":{},"from":{},"entries":[)",
                 snapshot.ledger_entries(), page->from);
  AppendEntries(*entries, &out);
  out += "]}\n";
}

}  // namespace tacit::serve
