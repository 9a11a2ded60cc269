#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_space.h"
#include "lab/audit/twin_noise.h"

namespace tacit::tape {

// All that a world asked and drew in a step, and what left of it.
struct TapedStep {
  std::vector<lab::TwinNoise::Query> queries;
  std::vector<lab::TwinNoise::Call> calls;
  // The vocabulary that the step learnt by, ascending; empty if there is none.
  std::vector<uint64_t> vocabulary;
};

// The rows that a learner asks about.
struct AskedRows {
  RowSpace space;
  uint64_t whole_most = 0;  // sums: tables of at most this many rows are released whole
};

// The noise of a world with other records, for which all that leaves is what left of the world on
// the tape. Sums get the noise that makes them come out as they did there. A row that only one of
// the worlds touched is written, kept or skipped as it was there. The draws of a choice by score
// let the same rows win.
class FollowNoise final : public noise::NoiseSource {
 public:
  explicit FollowNoise(AskedRows rows);
  ~FollowNoise() override;

  // The next draws are this step's, which must outlive it.
  void Follow(const TapedStep& step);
  // Ends the step; returns in which way this world asked something else, "" if it did not.
  std::string End();
  // By how much the sums of the worlds were apart, at most, in parts of their query's bound.
  const std::map<std::string, double>& moved() const { return moved_; }

  void Declare(const noise::Declared& declared) override;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override;
  double Uniform() override;
  uint64_t GeometricSkip(double p) override;
  double GaussianTail(double lower) override;
  void Rekey() override {}
  // No query of a learner draws these.
  void AddGaussian(double stddev, std::span<float> values) override;
  void FillGaussian(std::span<double> out) override;
  bool Bernoulli(double p) override;
  void FillKey(std::span<uint8_t, 32> key) override;

  class Answers;  // to the draws of one query

 private:
  class Step;  // the tape of the step under way, read

  void Stray(std::string_view how);

  const AskedRows rows_;
  std::unique_ptr<Step> step_;
  std::string query_;  // under way
  double bound_ = 0;
  std::unique_ptr<Answers> answers_;
  std::string strayed_;
  std::map<std::string, double> moved_;
};

}  // namespace tacit::tape
