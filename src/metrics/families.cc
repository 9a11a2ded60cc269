#include "metrics/families.h"

#include <fmt/format.h>

namespace tacit::metrics {
namespace {

constexpr std::string_view kHead =
    R"(<!-- tacitd --describe metrics --markdown > docs/reference/metrics.md -->
# Metrics

`GET /metrics` has Prometheus' text form. Figures that depend on records without noise are shown at
`serve.operator_listen` only ("operators" in the third column). [How to scrape
them](../operating/watch.md#prometheus), [what to do at an alert](../operating/alerts.md), [what
`tacit_stream_unusual`, dead letters and allowances mean](../operating/watch.md#what-operators-are-told), [what
AUC, calibration, entropy, HIT and NDCG mean](../concepts/privacy.md#the-figures-of-quality).

| metric | type | for | what |
|---|---|---|---|
)";

constexpr bool IsName(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == text.npos;
}

// Neither Markdown's table nor a text of JSON needs escapes for a sentence.
constexpr bool IsPlain(std::string_view text) {
  return !text.empty() && text.find_first_of("|\"\\\n") == text.npos;
}

static_assert(std::ranges::all_of(kFamilies, IsName, &Family::name));
static_assert(std::ranges::all_of(kFamilies, IsPlain, &Family::help));
// Each name comes after the one before it.
static_assert(std::ranges::adjacent_find(kFamilies, std::ranges::greater_equal(), &Family::name) ==
              std::end(kFamilies));
static_assert(std::ranges::all_of(kFamilies, [](const Family& family) {
  return (family.kind == Kind::kCounter) == family.name.ends_with("_total");
}));

std::string_view NameOf(Kind kind) {
  constexpr std::string_view kNames[] = {"counter", "gauge", "histogram"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view ReadersOf(const Family& family) {
  return family.audience == Audience::kPublic ? "everybody" : "operators";
}

}  // namespace

std::string MetricsAsMarkdown() {
  std::string text(kHead);
  for (const Family& family : kFamilies) {
    const std::string labels = family.labels.empty() ? "" : fmt::format("{{{}}}", family.labels);
    const std::string only = family.only.empty() ? "" : fmt::format("{}. ", family.only);
    text += fmt::format("| `{}{}` | {} | {} | {}{} |\n", family.name, labels, NameOf(family.kind),
                        ReadersOf(family), only, family.help);
  }
  return text;
}

std::string MetricsAsJson() {
  std::string text = "[";
  for (const Family& family : kFamilies)
    text += fmt::format(
        R"({}{{"name":"{}","type":"{}","for":"{}","labels":"{}","only":"{}","what":"{}"}})",
        &family == kFamilies ? "\n" : ",\n", family.name, NameOf(family.kind), ReadersOf(family),
        family.labels, family.only, family.help);
  return text + "\n]\n";
}

}  // namespace tacit::metrics
