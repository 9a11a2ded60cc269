#include "serve/scoring/model_json.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "http/http.h"
#include "privacy/tradeoff.h"

namespace tacit::serve {

privacy::LedgerTotal TotalOf(const store::Snapshot& snapshot, const privacy::Promise& promise) {
  privacy::LedgerTotal found{
      .learner = promise.learner, .unit = promise.unit, .delta = promise.delta};
  for (const privacy::LedgerTotal& total : snapshot.learners())
    if (total.learner == promise.learner) found = total;
  if (!std::isfinite(promise.epsilon)) found.epsilon = INFINITY;
  return found;
}

bool IsPrivate(const privacy::LedgerTotal& total) { return std::isfinite(total.epsilon); }

namespace {

void AppendShortest(auto number, std::string* out) {
  if (!std::isfinite(number)) {
    *out += "null";
    return;
  }
  std::array<char, 32> text;
  out->append(text.data(), fmt::format_to(text.data(), FMT_COMPILE("{}"), number));
}

}  // namespace

void AppendNumber(double number, std::string* out) { AppendShortest(number, out); }
void AppendNumber(float number, std::string* out) { AppendShortest(number, out); }

void AppendLoss(const privacy::LedgerTotal& total, std::string* out) {
  *out += R"("epsilon":)";
  AppendNumber(total.epsilon, out);
  *out += R"(,"delta":)";
  AppendNumber(total.delta, out);
  if (!total.not_covered.empty()) {
    *out += R"(,"not_covered":)";
    http::AppendJsonString(total.not_covered, out);
  }
}

void AppendStoppedBy(privacy::Spent spent, std::string* out) {
  *out += R"("stopped_by":)";
  if (spent == privacy::Spent::kNone)
    *out += "null";
  else
    http::AppendJsonString(privacy::Name(spent), out);
}

void AppendAtMost(const privacy::LedgerTotal& total, std::string* out) {
  const double advantage = total.AdvantageAtMost();
  *out += R"("at_most":{"accuracy":)";
  AppendNumber(advantage < 1 ? privacy::AccuracyAtMost(advantage) : INFINITY, out);
  *out += R"(,"words":)";
  http::AppendJsonString(privacy::PlainWords(advantage), out);
  *out += '}';
}

void AppendParameters(const store::Snapshot& snapshot, const privacy::Promise& promise,
                      std::string* out) {
  const privacy::LedgerTotal total = TotalOf(snapshot, promise);
  const bool is_private = IsPrivate(total);
  fmt::format_to(std::back_inserter(*out), R"("version":{},"snapshot":"sha256:{}",)",
                 snapshot.version().value, ToHex(snapshot.head()));
  if (is_private && std::isfinite(total.delta)) {
    AppendLoss(total, out);
    *out += ',';
  }
  fmt::format_to(std::back_inserter(*out), R"("private":{})", is_private);
}

Error NoSuchVersion(std::string_view learner, uint64_t asked, uint64_t served) {
  return {ErrorCode::kNotFound, fmt::format("model '{}' has no version {}: version {} is served",
                                            learner, asked, served)};
}

void AppendModel(const store::Snapshot& snapshot, const privacy::Promise& promise,
                 std::string* out) {
  const privacy::LedgerTotal total = TotalOf(snapshot, promise);
  *out += R"("model":{"learner":)";
  http::AppendJsonString(promise.learner, out);
  fmt::format_to(std::back_inserter(*out), R"(,"version":{},"snapshot":"sha256:{}",)",
                 snapshot.version().value, ToHex(snapshot.head()));
  AppendLoss(total, out);
  fmt::format_to(std::back_inserter(*out), R"(,"private":{}}})", IsPrivate(total));
}

}  // namespace tacit::serve
