#include "cuda/learn/device_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "cuda/device/device.h"

namespace tacit::cuda {
namespace {

std::optional<OptimizerRule::Kind> KindOf(const train::OptimizerOptions& options) {
  using Kind = OptimizerRule::Kind;
  const std::string_view name = options.kind->name;
  if (name == "sgd") return options.momentum > 0 ? Kind::kMomentum : Kind::kSgd;
  if (name == "adagrad") return Kind::kAdagrad;
  if (name == "adam") return Kind::kAdam;
  if (name == "adam-bc") return Kind::kCorrectedAdam;
  return {};
}

}  // namespace

Result<DeviceOptimizer> DeviceOptimizer::Make(Stream& stream,
                                              const train::OptimizerOptions& options,
                                              const store::DenseState& dense) {
  const auto kind = KindOf(options);
  if (!kind)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("the optimiser '{}' has no form for a GPU: set gpu.use to never, or take "
                    "sgd, adagrad, adam or adam-bc",
                    options.kind->name));
  DeviceOptimizer optimizer(stream, options);
  optimizer.size_ = dense.parameters.size();
  optimizer.moments_ = options.kind->dense_floats(options).per_number;
  const size_t n = optimizer.size_, moments = optimizer.moments_ * n;
  const bool averages = optimizer.average_.on();
  TACIT_ASSIGN(optimizer.staging_, HostBuffer<OptimizerRule>::Make(stream.device(), 1));
  TACIT_ASSIGN(optimizer.rule_on_device_, Buffer<OptimizerRule>::Make(stream.device(), 1));
  TACIT_ASSIGN(optimizer.weights_, Buffer<float>::Make(stream.device(), n));
  TACIT_ASSIGN(optimizer.state_, Buffer<float>::Make(stream.device(), moments));
  TACIT_ASSIGN(optimizer.averages_, Buffer<float>::Make(stream.device(), averages ? n : 0));
  TACIT_ASSIGN(optimizer.home_,
               HostBuffer<float>::Make(stream.device(), n + moments + optimizer.averages_.size()));

  OptimizerRule& rule = optimizer.rule_;
  rule.kind = *kind;
  rule.rate = options.learning_rate;
  rule.row_rate = options.row_learning_rate;
  rule.momentum = options.momentum;
  rule.beta1 = options.beta1;
  rule.beta2 = options.beta2;
  rule.epsilon = options.epsilon;
  rule.lazy =
      options.kind->may_be_lazy && options.moments == train::OptimizerOptions::Moments::kLazy;
  rule.average_decay = options.average_decay;
  rule.log_average_decay = std::log(options.average_decay);
  TACIT_RETURN_IF_ERROR(optimizer.Load(dense));
  return optimizer;
}

Status DeviceOptimizer::Load(const store::DenseState& dense) {
  const std::span<const float> state = dense.optimizer;
  TACIT_CHECK(dense.parameters.size() == size_ &&
                  state.size() == train::Optimizer(options_).DenseStateFloats(size_),
              "a state of another optimiser");
  const size_t moments = state_.size();
  TACIT_RETURN_IF_ERROR(stream_->Upload<float>(dense.parameters, weights_.span()));
  TACIT_RETURN_IF_ERROR(stream_->Upload<float>(state.first(moments), state_.span()));
  if (average_.on())
    TACIT_RETURN_IF_ERROR(
        stream_->Upload<float>(state.subspan(state.size() - 1 - size_, size_), averages_.span()));
  if (stores_steps()) step_ = CountOf(state.back());
  if (options_.kind->subtracts_noise) noise_average_ = state[moments];
  return stream_->Synchronize();
}

void DeviceOptimizer::Plan(const train::OptimizerOptions& options, size_t parameters,
                           MemoryNeed* need) {
  const uint64_t averages = MovingAverage(options.average_decay).on() ? 1 : 0;
  need->Add<OptimizerRule>(1)
      .Add<float>(parameters)
      .Add<float>(options.kind->dense_floats(options).per_number * parameters)
      .Add<float>(averages * parameters);
}

bool DeviceOptimizer::stores_steps() const { return options_.kind->counts_steps || average_.on(); }

Status DeviceOptimizer::BeginStep(double noise_stddev, double rate_factor) {
  const float rate = options_.learning_rate * static_cast<float>(rate_factor);
  rule_.rate = rate;
  rule_.step = ++step_;
  rule_.power1 = std::pow(double{options_.beta1}, step_);
  rule_.power2 = std::pow(double{options_.beta2}, step_);
  rule_.average_keep = static_cast<float>(average_.on() ? average_.Keep(step_ - 1, step_) : 0);
  rule_.adam = train::MakeAdamNumbers(options_.beta1, options_.beta2, rate, options_.epsilon,
                                      rule_.power1, rule_.power2);
  const auto upload = [&]() -> Status {
    staging_.span()[0] = rule_;
    return stream_->Upload<OptimizerRule>(staging_.span(), rule_on_device_.span());
  };
  if (!options_.kind->subtracts_noise) return upload();
  TACIT_CHECK(noise_stddev > 0 && std::isfinite(noise_stddev), "there is no noise to subtract");
  // As train::Optimizer::StepDense keeps it.
  double average = options_.beta2 * double{noise_average_};
  average += (1 - double{options_.beta2}) * noise_stddev * noise_stddev;
  noise_average_ = static_cast<float>(average);
  rule_.corrected = {.beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .rate = static_cast<float>(rate / (1 - rule_.power1)),
                     .per_correction2 = static_cast<float>(1 / (1 - rule_.power2)),
                     .noise = static_cast<float>(average / (1 - rule_.power2)),
                     .floor = options_.variance_floor};
  return upload();
}

DenseParameters DeviceOptimizer::parameters() const {
  const size_t first = moments_ > 0 ? size_ : 0, second = moments_ > 1 ? size_ : 0;
  return {.weights = weights_.span(),
          .first = state_.span().Sub(0, first),
          .second = state_.span().Sub(first, second),
          .average = averages_.span()};
}

Status DeviceOptimizer::SendHome() {
  const size_t moments = state_.size();
  const std::span<float> home = home_.span();
  TACIT_RETURN_IF_ERROR(stream_->Download(weights_.span(), home.first(size_)));
  TACIT_RETURN_IF_ERROR(stream_->Download(state_.span(), home.subspan(size_, moments)));
  return stream_->Download(averages_.span(), home.subspan(size_ + moments, averages_.size()));
}

void DeviceOptimizer::ReadHome(store::DenseState* dense) const {
  const float* const home = home_.span().data();
  const size_t moments = state_.size(), all = train::Optimizer(options_).DenseStateFloats(size_);
  dense->parameters.assign(home, home + size_);
  std::vector<float>& state = dense->optimizer;
  state.reserve(all);
  state.assign(home + size_, home + size_ + moments);
  state.resize(all);
  if (average_.on())
    std::copy_n(home + size_ + moments, size_, state.end() - 1 - static_cast<ptrdiff_t>(size_));
  if (options_.kind->subtracts_noise) state[moments] = noise_average_;
  if (stores_steps()) state.back() = CountAsFloat(step_);
}

Status DeviceOptimizer::Settle(store::DenseState* dense) {
  TACIT_RETURN_IF_ERROR(SendHome());
  TACIT_RETURN_IF_ERROR(stream_->Synchronize());
  ReadHome(dense);
  return {};
}

}  // namespace tacit::cuda
