#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/proposal.h"

namespace tacit::inspect {

// The delta of prices where no delta is given.
inline constexpr double kDeltaForPrices = 1e-6;

enum class LearnerChoice : uint8_t { kLinear, kNetwork, kNextItem };

// The mean of the sample's files; nothing of a topic.
std::optional<uint64_t> FileRecords(const Sample& sample);

// A learner of the proposal, and the numbers that it follows from. All that it is given must
// outlive it.
class ProposedLearner {
 public:
  // `beside`: the model of labels is proposed too.
  ProposedLearner(const Sample& sample, const Roles& roles, const Evidence& evidence,
                  const Asked& asked, LearnerChoice choice, bool beside);

  bool is_next_item() const { return choice_ == LearnerChoice::kNextItem; }
  // Its entry in the list of learners, each value with its reason or its price.
  std::string Yaml() const;

 private:
  void PlanPeriods();
  void PlanFiles();
  void PlanRest();
  std::vector<double> FileOffsets() const;
  uint64_t Categories() const;
  // The steps pass once over a held period.
  uint64_t HeldBatch() const;
  uint64_t HeldSteps() const;
  uint64_t Allowance(uint64_t periods) const;
  config::Learner ForPrices() const;

  // Parts of the entry, and sentences of it.
  std::string NetworkYaml() const;
  std::string OptimizerYaml() const;
  std::string ParticipationYaml() const;
  std::string FilesYaml() const;
  std::string BatchYaml() const;
  std::string HeldYaml() const;
  std::string PrivacyYaml() const;
  std::string RecordsOfAPeriod() const;
  std::string Choices() const;
  std::string Prices() const;

  const Sample& sample_;
  const Roles& roles_;
  const Evidence& evidence_;
  const Asked& asked_;
  const LearnerChoice choice_;
  const bool beside_;
  uint64_t period_ = 0;
  bool batch_by_rule_ = false;
  uint64_t step_files_ = 1;
  uint32_t allowance_ = 1;
  UserVisits visits_;
  double users_of_period_ = 0;
};

}  // namespace tacit::inspect
