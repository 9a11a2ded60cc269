#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "mechanism/row_sums.h"
#include "support/flat_sums.h"
#include "support/silent_noise.h"

// The same audit, of a period's noised sums. The adversary sees all that a release tells: which
// rows, their sums and counts, and the further numbers.
namespace tacit::audit {

// Hands the draws of a release to a source, and writes down what was asked for with its noise on.
// Keeps the source's key, so that a run can be repeated. Without a source it is silent.
class TappedNoise : public noise::SilentNoise {
 public:
  // One call: numbers with their noise, in steps, and its standard deviation.
  struct Draw {
    double stddev = 0;
    std::vector<int64_t> values;
  };

  void From(noise::NoiseSource* source) { source_ = source; }
  std::vector<Draw>& draws() { return draws_; }

  void AddGridGaussian(double stddev, std::span<int64_t> values) override;
  double Uniform() override { return source_->Uniform(); }
  uint64_t GeometricSkip(double p) override { return source_->GeometricSkip(p); }
  double GaussianTail(double lower) override { return source_->GaussianTail(lower); }

 protected:
  noise::NoiseSource* source_ = nullptr;

 private:
  std::vector<Draw> draws_;
};

// The numbers of a release before noise, over the whole space.
struct ExactSums {
  std::vector<double> sums, counts;  // per row
  std::vector<double> numbers;
};

// The public frame of a release.
struct SumsFrame {
  std::vector<mechanism::SumTable> tables;
  double deviation = 0;  // of the noise on every number
  double threshold = 0;  // least count that a row of a large table is released with
};

// Releases one period in either world. Each thread has its own.
class SumsSubject {
 public:
  virtual ~SumsSubject() = default;
  virtual const SumsFrame& frame() const = 0;
  virtual double charged_mu() const = 0;
  virtual ExactSums Exact(bool with_canary) = 0;
  virtual testing::FlatSums Release(bool with_canary, noise::NoiseSource& noise) = 0;
};

struct SumsCase {
  std::string name;
  std::function<std::unique_ptr<SumsSubject>()> make;
  bool reaches = true;  // whether the canary adds a whole clip, and nearly all of it is seen
};

// Mechanisms as they are: through RowSums, and through the learner.
std::vector<SumsCase> RightSums();
std::vector<SumsCase> RightLearners();

struct FaultySums {
  SumsCase audited;
  // True if the case costs more than it says. If not, the canary's signal is lost.
  bool exceeds = true;
};
// The same with one fault planted in each.
std::vector<FaultySums> PlantedSums();
std::vector<FaultySums> PlantedLearners();

struct SumsFinding {
  double charged_mu = 0;
  MuBound likelihood;    // by the ln of the likelihood ratio, were the release right
  MuBound at_threshold;  // by the canary's rows whose count is the threshold to the last bit

  double lower() const { return std::max(likelihood.lower, at_threshold.lower); }
  bool Exceeds() const { return lower() > charged_mu; }
  bool Reaches(double share) const { return likelihood.lower >= share * charged_mu; }
};
SumsFinding AuditSums(const SumsCase& audited, const AuditOptions& options);

std::string Describe(const SumsCase& audited, const SumsFinding& finding);

}  // namespace tacit::audit
