#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "noise/declared.h"

namespace tacit::lab {

// A learner's part in an audit by twins: the one that leads draws noise from a source and notes
// call by call what it was added to and what left; the one that follows is given, call by call,
// what left of the other. So both have released the same, and differ in nothing but their records:
// for any choice the learner made by earlier releases, the likelihood of the next one is known in
// both worlds. No learner that is served has one.
class TwinNoise final : public noise::NoiseSource {
 public:
  struct Call {
    enum class Kind { kGrid, kFillGrid, kFloats, kNormals, kNumber, kKey };
    Kind kind = Kind::kNumber;
    double asked = 0;                    // the standard deviation, the chance, the bound
    double factor = 0;                   // kFillGrid: by which draws become floats
    std::vector<int64_t> before, after;  // kGrid: the sums, and what left of them
    std::vector<double> given;           // of the other kinds
    size_t query = kUndeclared;          // the place of its query among queries()
  };
  static constexpr size_t kUndeclared = static_cast<size_t>(-1);
  // A declaration of the step, as noise::Declared has it.
  struct Query {
    std::string_view name;
    double bound = 0;
    std::vector<double> scores;
    std::vector<uint64_t> rows;
  };

  // The next calls are this step's: led by `source`, or following another's calls, which must
  // outlive the step.
  void Lead(noise::NoiseSource* source);
  void Follow(const TwinNoise& leader);

  std::span<const Call> calls() const { return {calls_.data(), made_}; }
  std::span<const Query> queries() const { return queries_; }
  // A call that the leader did not make so, or one that it made and this one did not: what left
  // cannot have come from this twin.
  bool strayed() const {
    return strayed_ || (leader_ != nullptr && made_ != leader_->calls().size());
  }

  // REQUIRES a name that lives as long as the program.
  void Declare(const noise::Declared& declared) override;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override;
  void AddGaussian(double stddev, std::span<float> values) override;
  void FillGaussian(std::span<double> out) override;
  double Uniform() override;
  bool Bernoulli(double p) override;
  void FillKey(std::span<uint8_t, 32> key) override;
  uint64_t GeometricSkip(double p) override;
  double GaussianTail(double lower) override;
  // The auditor's sources are keyed by him.
  void Rekey() override {}

 private:
  void BeginStep(noise::NoiseSource* source, const TwinNoise* leader);
  Call& Begin(Call::Kind kind, double asked);
  // The leader's call in this place, if it is this one; else null, and this twin has strayed.
  const Call* Led(const Call& call, size_t size);
  double Number(double asked, double otherwise, double (*draw)(noise::NoiseSource&, double));

  noise::NoiseSource* source_ = nullptr;
  const TwinNoise* leader_ = nullptr;
  std::vector<Call> calls_;  // keep their memory from one step to the next
  size_t made_ = 0;
  std::vector<Query> queries_;
  size_t declared_ = kUndeclared;
  bool strayed_ = false;
};

// ln of how much likelier what left is by `to` than by `from`, whose calls are the same ones, and
// by how much their sums are apart, squared and in standard deviations. Neither has strayed.
struct TwinRatio {
  double log = 0, squared = 0;
};
TwinRatio RatioOf(const TwinNoise& to, const TwinNoise& from);

}  // namespace tacit::lab
