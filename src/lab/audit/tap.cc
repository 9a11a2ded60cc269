#include "lab/audit/tap.h"

#include <algorithm>

namespace tacit::lab {

void Tap::AddGridGaussian(double stddev, std::span<int64_t> values) {
  if (source_ != nullptr) source_->AddGridGaussian(stddev, values);
  if (calls_ == draws_.size()) draws_.emplace_back();
  Draw& draw = draws_[calls_++];
  draw.stddev = stddev;
  draw.values.assign(values.begin(), values.end());
}
void Tap::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  if (source_ != nullptr) return source_->FillGridGaussian(stddev, factor, out);
  std::ranges::fill(out, 0.0f);
}
void Tap::AddGaussian(double stddev, std::span<float> values) {
  if (source_ != nullptr) source_->AddGaussian(stddev, values);
}
void Tap::FillGaussian(std::span<double> out) {
  if (source_ != nullptr) return source_->FillGaussian(out);
  std::ranges::fill(out, 0.0);
}
double Tap::Uniform() { return source_ != nullptr ? source_->Uniform() : 0.5; }
bool Tap::Bernoulli(double p) { return source_ != nullptr ? source_->Bernoulli(p) : p > 0.5; }
void Tap::FillKey(std::span<uint8_t, 32> key) {
  if (source_ != nullptr) return source_->FillKey(key);
  std::ranges::fill(key, uint8_t{0});
}
uint64_t Tap::GeometricSkip(double p) {
  return source_ != nullptr ? source_->GeometricSkip(p) : uint64_t{1} << 63;
}
double Tap::GaussianTail(double lower) {
  return source_ != nullptr ? source_->GaussianTail(lower) : std::max(lower, 0.0);
}

}  // namespace tacit::lab
