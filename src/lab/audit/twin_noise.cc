#include "lab/audit/twin_noise.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::lab {

using Kind = TwinNoise::Call::Kind;

void TwinNoise::Lead(noise::NoiseSource* source) { BeginStep(source, nullptr); }
void TwinNoise::Follow(const TwinNoise& leader) { BeginStep(nullptr, &leader); }

void TwinNoise::BeginStep(noise::NoiseSource* source, const TwinNoise* leader) {
  source_ = source;
  leader_ = leader;
  made_ = 0;
  queries_.clear();
  declared_ = kUndeclared;
  strayed_ = false;
}

void TwinNoise::Declare(const noise::Declared& declared) {
  declared_ = declared.query.empty() ? kUndeclared : queries_.size();
  if (declared.query.empty()) return;
  queries_.push_back({.name = declared.query,
                      .bound = declared.bound,
                      .scores = {declared.scores.begin(), declared.scores.end()},
                      .rows = {declared.rows.begin(), declared.rows.end()}});
}

TwinNoise::Call& TwinNoise::Begin(Kind kind, double asked) {
  if (made_ == calls_.size()) calls_.emplace_back();
  Call& call = calls_[made_++];
  call.kind = kind;
  call.asked = asked;
  call.query = declared_;
  call.before.clear();
  call.after.clear();
  call.given.clear();
  return call;
}

const TwinNoise::Call* TwinNoise::Led(const Call& call, size_t size) {
  if (made_ <= leader_->made_) {
    const Call& led = leader_->calls_[made_ - 1];
    const size_t of_led = call.kind == Kind::kGrid ? led.after.size() : led.given.size();
    if (led.kind == call.kind && led.asked == call.asked && of_led == size) return &led;
  }
  strayed_ = true;
  return nullptr;
}

void TwinNoise::AddGridGaussian(double stddev, std::span<int64_t> values) {
  Call& call = Begin(Kind::kGrid, stddev);
  call.before.assign(values.begin(), values.end());
  if (source_ != nullptr) {
    source_->AddGridGaussian(stddev, values);
  } else if (const Call* led = Led(call, values.size())) {
    std::ranges::copy(led->after, values.begin());
  }
  call.after.assign(values.begin(), values.end());
}

void TwinNoise::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  Call& call = Begin(Kind::kFillGrid, stddev);
  call.factor = factor;
  if (source_ != nullptr) {
    source_->FillGridGaussian(stddev, factor, out);
  } else if (const Call* led = Led(call, out.size())) {
    std::ranges::transform(led->given, out.begin(), [](double x) { return static_cast<float>(x); });
  }
  call.given.assign(out.begin(), out.end());
}

void TwinNoise::AddGaussian(double stddev, std::span<float> values) {
  // Not for values that are released: the noise alone is the same in both.
  Call& call = Begin(Kind::kFloats, stddev);
  std::vector<float> noise(values.size(), 0.0f);
  if (source_ != nullptr) {
    source_->AddGaussian(stddev, noise);
  } else if (const Call* led = Led(call, values.size())) {
    std::ranges::transform(led->given, noise.begin(),
                           [](double x) { return static_cast<float>(x); });
  }
  call.given.assign(noise.begin(), noise.end());
  for (size_t i = 0; i < values.size(); ++i) values[i] += noise[i];
}

void TwinNoise::FillGaussian(std::span<double> out) {
  Call& call = Begin(Kind::kNormals, 1);
  std::ranges::fill(out, 0.0);
  if (source_ != nullptr) {
    source_->FillGaussian(out);
  } else if (const Call* led = Led(call, out.size())) {
    std::ranges::copy(led->given, out.begin());
  }
  call.given.assign(out.begin(), out.end());
}

double TwinNoise::Number(double asked, double otherwise,
                         double (*draw)(noise::NoiseSource&, double)) {
  Call& call = Begin(Kind::kNumber, asked);
  double number = otherwise;
  if (source_ != nullptr) {
    number = draw(*source_, asked);
  } else if (const Call* led = Led(call, 1)) {
    number = led->given[0];
  }
  call.given.assign(1, number);
  return number;
}

double TwinNoise::Uniform() {
  return Number(0, 0.5, [](noise::NoiseSource& source, double) { return source.Uniform(); });
}
bool TwinNoise::Bernoulli(double p) {
  return Number(p, p > 0.5 ? 1 : 0, [](noise::NoiseSource& source, double chance) {
           return source.Bernoulli(chance) ? 1.0 : 0.0;
         }) > 0;
}
uint64_t TwinNoise::GeometricSkip(double p) {
  // Skips beyond what a double tells apart are beyond all rows, too.
  return static_cast<uint64_t>(Number(p, 0x1p62, [](noise::NoiseSource& source, double chance) {
    return std::min(static_cast<double>(source.GeometricSkip(chance)), 0x1p62);
  }));
}
double TwinNoise::GaussianTail(double lower) {
  return Number(lower, std::max(lower, 0.0), [](noise::NoiseSource& source, double bound) {
    return source.GaussianTail(bound);
  });
}
void TwinNoise::FillKey(std::span<uint8_t, 32> key) {
  Call& call = Begin(Kind::kKey, 0);
  std::ranges::fill(key, uint8_t{0});
  if (source_ != nullptr) {
    source_->FillKey(key);
  } else if (const Call* led = Led(call, key.size())) {
    std::ranges::transform(led->given, key.begin(),
                           [](double x) { return static_cast<uint8_t>(x); });
  }
  call.given.assign(key.begin(), key.end());
}

TwinRatio RatioOf(const TwinNoise& to, const TwinNoise& from) {
  const auto calls = to.calls(), others = from.calls();
  TACIT_CHECK(calls.size() == others.size(), "twins that have not strayed");
  TwinRatio ratio;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].kind != Kind::kGrid) continue;
    const std::vector<int64_t>&a = calls[c].before, &b = others[c].before, &left = calls[c].after;
    double along = 0, squared = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto moved = static_cast<double>(a[i] - b[i]);
      along += static_cast<double>(left[i] - b[i]) * moved;
      squared += moved * moved;
    }
    const double variance = calls[c].asked * calls[c].asked;
    ratio.log += along / variance - squared / (2 * variance);
    ratio.squared += squared / variance;
  }
  return ratio;
}

}  // namespace tacit::lab
