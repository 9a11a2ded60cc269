#include "lab/next_item/methods.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "lab/next_item/counted_method.h"
#include "lab/next_item/trained_method.h"

namespace tacit::lab {
namespace {

constexpr std::array<std::string_view, 3> kCounted = {"transitions", "transitions-no-items",
                                                      "popularity"};

// The names of counting methods, then the ranked one, then the trained ones.
const std::vector<std::string_view>& MethodNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(kCounted.begin(), kCounted.end());
    names.push_back(kRankedMethod);
    names.insert(names.end(), TrainedMethodNames().begin(), TrainedMethodNames().end());
    return names;
  }();
  return kNames;
}

}  // namespace

Status CheckSequenceMethod(std::string_view name) {
  if (std::ranges::find(MethodNames(), name) != MethodNames().end()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--learner {}: no learner of sequences{}; there are {}", name,
                          DidYouMean(name, MethodNames()), fmt::join(MethodNames(), ", ")));
}

bool LearnsAtOnce(std::string_view name) {
  return std::ranges::find(kCounted, name) != kCounted.end();
}

std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  const bool counted = LearnsAtOnce(name), ranked = name == kRankedMethod;
  std::string identity(name);
  if (counted || ranked || BeginsWithCounts(name)) identity += " " + setting.transitions.Text();
  if (ranked) return identity + " " + setting.RankedText();
  if (!counted) identity += " " + setting.TrainedText();
  return identity;
}

std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  std::string identity = SequenceMethodIdentity(name, setting);
  // A method with counts already has `forget` in their constants.
  if (!LearnsAtOnce(name) && !BeginsWithCounts(name) && name != kRankedMethod)
    identity += fmt::format(" forget {}", setting.transitions.forget);
  if (name == kRankedMethod) identity += fmt::format(" users {}", setting.trained.batch_private);
  return identity;
}

std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting,
                                               WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == kRankedMethod || LearnsAtOnce(name)) return MakeCountedMethod(name, setting, workers);
  return MakeTrainedMethod(name, setting, workers);
}

Result<double> SequenceMethod::Fit(const model::Histories& train, const EpsilonDelta& privacy,
                                   noise::NoiseSource& noise, WorkerPool& workers,
                                   const std::function<void(double)>& progress) {
  constexpr double kSlack = 1 + 1e-9;
  TACIT_RETURN_IF_ERROR(CheckEpsilonDelta(privacy));
  method_ = MakeStreamMethod(name_, setting_, workers);
  hooks_.at_once = privacy;
  hooks_.progress = progress;
  method_->SetHooks(hooks_);
  const std::vector<uint32_t> known(train.units());
  TACIT_ASSIGN(const privacy::Spending spending,
               method_->Learn({train, known}, MuOf(privacy), noise, workers));
  const double spent = EpsilonOf(spending, privacy);
  if (std::isinf(privacy.epsilon) || spent <= privacy.epsilon * kSlack) return spent;
  return Fail(ErrorCode::kRefused,
              fmt::format("epsilon {} was promised and {} spent", privacy.epsilon, spent));
}

}  // namespace tacit::lab
