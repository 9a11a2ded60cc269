#include "lab/next_item/methods.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "lab/next_item/counted_method.h"
#include "lab/next_item/trained_method.h"
#include "lab/next_item/trained_model.h"

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

// A stream's method that learns all histories as its only period.
class AtOnce final : public SequenceMethod {
 public:
  AtOnce(std::string_view name, const SequenceSetting& setting) : name_(name), setting_(setting) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override {
    TACIT_RETURN_IF_ERROR(CheckEpsilonDelta(privacy));
    method_ = MakeCountedStream(name_, setting_, workers);
    hooks_.at_once = true;
    hooks_.progress = progress;
    method_->SetHooks(hooks_);
    const std::vector<uint32_t> known(train.units());
    TACIT_ASSIGN(const double mu_squared,
                 method_->Learn({train, known}, MuOf(privacy), noise, workers));
    return EpsilonOf(mu_squared, privacy);
  }
  void Watch(double steps, std::function<void(double)> look) override {
    hooks_.look_every = steps;
    hooks_.look = std::move(look);
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    method_->Score(history, scores);
  }

 private:
  const std::string name_;
  const SequenceSetting setting_;
  LearnHooks hooks_;
  std::unique_ptr<StreamMethod> method_;
};

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
  if (name == kRankedMethod || LearnsAtOnce(name)) return std::make_unique<AtOnce>(name, setting);
  return MakeTrainedMethod(name, setting);
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
  if (name == kRankedMethod || LearnsAtOnce(name)) return MakeCountedStream(name, setting, workers);
  return MakeTrainedStream(name, setting, workers);
}

}  // namespace tacit::lab
