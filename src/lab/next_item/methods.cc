#include "lab/next_item/methods.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "lab/next_item/counted_method.h"
#include "lab/next_item/counted_stream.h"
#include "lab/next_item/ranked_method.h"
#include "lab/next_item/trained_method.h"
#include "lab/next_item/trained_model.h"
#include "lab/next_item/trained_stream.h"

namespace tacit::lab {
namespace {

constexpr std::array<std::string_view, 3> kCounted = {"transitions", "transitions-no-items",
                                                      "popularity"};

// The names of counting methods, then the ranked one, then the trained ones.
const std::vector<std::string_view>& Names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(kCounted.begin(), kCounted.end());
    names.push_back(kRankedMethod);
    names.insert(names.end(), TrainedMethodNames().begin(), TrainedMethodNames().end());
    return names;
  }();
  return kNames;
}

}  // namespace

std::span<const std::string_view> SequenceMethodNames() { return Names(); }

Status CheckSequenceMethod(std::string_view name) {
  if (std::ranges::find(Names(), name) != Names().end()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--learner {}: no learner of sequences{}; there are {}", name,
                          DidYouMean(name, Names()), fmt::join(Names(), ", ")));
}

bool LearnsAtOnce(std::string_view name) {
  return std::ranges::find(kCounted, name) != kCounted.end();
}

std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  const bool counted = LearnsAtOnce(name), ranked = name == kRankedMethod;
  std::string identity(name);
  if (counted || ranked || BeginsWithCounts(name)) identity += " " + setting.transitions.Text();
  if (ranked) return identity + " " + setting.ranked.Text();
  if (!counted) identity += " " + setting.trained.Text();
  return identity;
}

std::unique_ptr<SequenceMethod> MakeSequenceMethod(std::string_view name,
                                                   const SequenceSetting& setting) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == kRankedMethod) return MakeRankedMethod(setting);
  if (!LearnsAtOnce(name)) return MakeTrainedMethod(name, setting);
  return MakeCountedMethod(name, setting);
}

Status CheckStreamMethod(std::string_view name) {
  TACIT_RETURN_IF_ERROR(CheckSequenceMethod(name));
  if (name != kRankedMethod) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("--learner {} learns its order from all users at once, not from a --stream; "
                  "transitions, which it begins with, does",
                  name));
}

std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  std::string identity = SequenceMethodIdentity(name, setting);
  // A method with counts already has `forget` in their constants.
  if (!LearnsAtOnce(name) && !BeginsWithCounts(name))
    identity += fmt::format(" forget {}", setting.transitions.forget);
  return identity;
}

std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting,
                                               WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (!LearnsAtOnce(name)) return MakeTrainedStream(name, setting, workers);
  return MakeCountedStream(name, setting, workers);
}

}  // namespace tacit::lab
