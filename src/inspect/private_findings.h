#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "inspect/private_sample.h"
#include "inspect/roles.h"
#include "inspect/trial.h"
#include "noise/noise.h"

namespace tacit::inspect {

// Cells that a column's values are hashed into, and numbers that may be a scale's: 0, 0.5, ... 10.
inline constexpr size_t kValueCells = 1024, kScaleNumbers = 21;
// Periods up to which users are told apart.
inline constexpr size_t kPeriodsMost = 16;

// The findings about records by noised counts alone: nothing in here is told raw. All counts are
// one Gaussian of `noise_multiplier` together, divided over four releases, each of which may look
// at the ones before. A multiplier of 0 is the noiseless twin, for tests.
//
// The quantities of a column, each with what a record moves it by: its forms (root of 2); records
// that have it, by half (1); different values, and those of the first half (1 each); values hashed
// into cells (1); numbers on a scale, and in the ranges of times (1); neighbouring lines whose
// numbers fall or not (1); different values of lists (4). Of all records: readable ones by half
// (1), different lines (1), outcomes by the codec and label (1), days (1), pairs of user and day
// (1), users by their periods (root of 2; of unit user 1).
class PrivateFindings {
 public:
  // Looks at the records. Fails where they are not as the person says. REQUIRES at most
  // kPrivateFieldsMost fields, the named ones among them, and kUserRecordsMost records of a user.
  static Result<std::unique_ptr<PrivateFindings>> Make(PrivateLook look, double noise_multiplier,
                                                       noise::NoiseSource& noise);
  ~PrivateFindings();

  const Sample& sample() const { return sample_; }
  const std::vector<Profile>& profiles() const { return profiles_; }
  const Evidence& evidence() const { return *evidence_; }
  // The deviation of the noise on a column's counts, and the noised count from which a field's name
  // is shown (0: all names were given).
  double deviation() const { return deviation_; }
  double name_threshold() const { return name_threshold_; }

  // Reads the records with the codec of a proposal, and releases what came of it. REQUIRES that it
  // is called once.
  Result<Trial> Try(const config::Config& config, const Roles& roles);

 private:
  PrivateFindings(PrivateLook look, double noise_multiplier, noise::NoiseSource& noise);
  Status FindFields();
  Status Look();
  double ShareOf(double share) const;

  const PrivateLook look_;
  const double noise_multiplier_;
  noise::NoiseSource& noise_;
  std::vector<std::string> places_;
  PrivateSample raw_;
  Sample sample_;
  std::vector<Profile> profiles_;
  std::unique_ptr<Evidence> evidence_;
  double deviation_ = 0, name_threshold_ = 0;
};

// Returns the names that are shown, ascending: those whose noised count is at least `threshold`,
// the `most` of the largest counts.
std::vector<std::string> NamesAbove(std::span<const std::pair<std::string, double>> noised,
                                    double threshold, size_t most = kPrivateFieldsMost);

}  // namespace tacit::inspect
