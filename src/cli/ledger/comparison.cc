#include "cli/ledger/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/text_file.h"
#include "privacy/anchor.h"
#include "privacy/learner_names.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

const json::object* LearnerNamed(const json::array& learners, std::string_view name) {
  for (const json::value& learner : learners)
    if (learner.at("learner").as_string() == name) return &learner.as_object();
  return nullptr;
}

std::string ValueText(const json::value* value) {
  if (value == nullptr) return "none";
  if (value->is_null()) return "unbounded";
  if (value->is_double()) return fmt::format("{}", value->get_double());
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

// Adds a sentence for each of these keys that has another value than before.
void CompareKeys(const std::string& name, const json::object& before, const json::object& now,
                 std::initializer_list<std::string_view> keys, std::vector<std::string>* changes) {
  for (const std::string_view key : keys) {
    const std::string was = ValueText(before.if_contains(key)),
                      is = ValueText(now.if_contains(key));
    if (was != is) changes->push_back(fmt::format("{}: {} is {}, and was {}", name, key, is, was));
  }
}

const json::object* LastSteps(const json::object& learner) {
  const json::array& runs = learner.at("runs").as_array();
  const auto last = std::find_if(runs.rbegin(), runs.rend(), [](const json::value& run) {
    return run.at("steps").to_number<uint64_t>() > 0;
  });
  return last == runs.rend() ? nullptr : &last->as_object();
}

using RunsByHead = std::map<std::string_view, const json::value*>;

// The learner's figures follow from its runs. A run that another follows never changes: the ledger
// still has it, if it continues the older one.
Status CheckRuns(const json::object& learner, const RunsByHead& now, bool continued) {
  const auto damaged = [&](const std::string& what) {
    return Fail(ErrorCode::kCorruption,
                fmt::format("learner {}: {}", json::serialize(learner.at("learner")), what));
  };
  const json::array& runs = learner.at("runs").as_array();
  uint64_t steps = 0;
  for (const json::value& run : runs) {
    steps += run.at("steps").to_number<uint64_t>();
    const auto same = now.find(run.at("head").as_string());
    const bool gone = same == now.end();
    if (gone ? continued && &run != &runs.back() : *same->second != run)
      return damaged(
          fmt::format("entry {} is not as the ledger has it", json::serialize(run.at("entry"))));
  }
  if (learner.at("steps").to_number<uint64_t>() != steps)
    return damaged("its steps are not the sum of its runs'");
  if (!runs.empty() && learner.at("epsilon") != runs.back().at("epsilon"))
    return damaged("its epsilon is not its last run's");
  return {};
}

Result<Comparison> Compare(const json::object& old, const json::object& now,
                           const LedgerCopy& ledger) {
  TACIT_ASSIGN(privacy::Anchor anchor,
               privacy::Anchor::Decode(std::string_view(old.at("anchor").as_string())));
  Comparison compared;
  compared.head = old.at("head").as_string();
  if (compared.head != "sha256:" + ToHex(anchor.head))
    return Fail(ErrorCode::kCorruption, "its head is not its anchor's");
  if (const Status held = privacy::CheckAnchors({&anchor, 1}, ledger.ForAnchors()); !held)
    compared.not_in_chain = held.error().message;
  compared.forks_would_show = ledger.terms.has_value();
  const privacy::LearnerNames names(ledger.entries);
  const json::array &learners = old.at("learners").as_array(),
                    &learners_now = now.at("learners").as_array();
  RunsByHead runs;
  for (const json::value& learner : learners_now)
    for (const json::value& run : learner.at("runs").as_array())
      runs.emplace(run.at("head").as_string(), &run);
  std::vector<std::string> known;
  for (const json::value& one : learners) {
    const json::object& before = one.as_object();
    TACIT_RETURN_IF_ERROR(CheckRuns(before, runs, compared.not_in_chain.empty()));
    const std::string was(before.at("learner").as_string()), name(names.Now(was));
    known.push_back(name);
    if (name != was) compared.changes.push_back(fmt::format("{}: was called {}", name, was));
    const json::object* const after = LearnerNamed(learners_now, name);
    if (after == nullptr) {
      compared.changes.push_back(name + ": is gone");
      continue;
    }
    CompareKeys(name, before, *after, {"unit", "adjacency", "delta", "budget", "epsilon", "steps"},
                &compared.changes);
    const json::object *steps = LastSteps(before), *steps_now = LastSteps(*after);
    if (steps != nullptr && steps_now != nullptr)
      CompareKeys(name + ", a step", *steps, *steps_now,
                  {"mechanism", "participation", "noise_multiplier", "sampling_rate", "block_steps",
                   "zcdp_rho", "clip", "code_version"},
                  &compared.changes);
  }
  for (const json::value& learner : learners_now)
    if (const std::string name(learner.at("learner").as_string());
        std::ranges::find(known, name) == known.end())
      compared.changes.push_back(
          fmt::format("{}: is new, with {} and epsilon {}", name,
                      Counted(learner.at("steps").to_number<uint64_t>(), "step"),
                      ValueText(&learner.at("epsilon"))));
  CompareKeys("all together", old.at("total").as_object(), now.at("total").as_object(),
              {"unit", "delta", "budget", "epsilon", "steps"}, &compared.changes);
  return compared;
}

}  // namespace

Result<Comparison> CompareWith(const std::string& path, const std::string& now,
                               const LedgerCopy& ledger) {
  constexpr size_t kMiBMost = 4096;
  TACIT_ASSIGN(const std::string text, config::ReadTextFile(path, kMiBMost));
  json::error_code error;
  const json::value old = json::parse(text, error);
  const auto foreign = [&] {
    return Fail(ErrorCode::kCorruption,
                fmt::format("--compare {}: is no statement that `tacit privacy report --format "
                            "json` of this version has written",
                            path));
  };
  if (error || !old.is_object()) return foreign();
  try {
    auto compared = Compare(old.get_object(), json::parse(now).as_object(), ledger);
    if (!compared) return Fail(std::move(compared.error()).Context("--compare " + path));
    compared->file = path;
    return *std::move(compared);
  } catch (const std::exception&) {  // JSON of another shape
    return foreign();
  }
}

std::string InWords(const Comparison& compared) {
  if (!compared.not_in_chain.empty())
    return fmt::format("THE LEDGER OF {} IS NOT CONTINUED BY THIS ONE. {}.", compared.file,
                       compared.not_in_chain);
  return fmt::format("This ledger continues the one of {}, whose head was {}{}.", compared.file,
                     compared.head,
                     compared.forks_would_show
                         ? ""
                         : "; within a run of equal steps a fork would not show, for only a store "
                           "or checkpoint has its terms");
}

json::object ToJson(const Comparison& compared) {
  json::array changes;
  for (const std::string& change : compared.changes) changes.emplace_back(change);
  const bool held = compared.not_in_chain.empty();
  return {{"file", compared.file},
          {"head", compared.head},
          {"in_chain", held},
          {"reason", held ? json::value(nullptr) : json::value(compared.not_in_chain)},
          {"forks_would_show", compared.forks_would_show},
          {"changes", std::move(changes)}};
}

}  // namespace tacit::cli
