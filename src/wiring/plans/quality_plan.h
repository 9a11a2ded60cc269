#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "config/config.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "store/store.h"
#include "train/quality/private_quality.h"

namespace tacit::wiring {

// The private quality that a learner's `quality` asks for: an account in the ledger, and in the
// store a place behind those of the learners. It has no model.
struct QualityPlan {
  std::string learner;
  LearnerIndex learner_index;
  LearnerIndex index;  // of the account
  privacy::Promise promise;
  privacy::Charge charge;  // of a window
  uint64_t steps = 0;      // of a window
  uint32_t bins = 0;
  uint64_t passes_most = 1;  // windows that a record is in, one a pass
};

// Plans those of these learners, which are at the places 0, 1, ... Fails where noise would hide all
// that is shown.
Result<std::vector<QualityPlan>> PlanQualities(const std::vector<config::Learner>& learners);

// The plan in words, for people.
std::string QualityText(const QualityPlan& plan);

store::LearnerLayout QualityLayout(const QualityPlan& plan);

// The qualities of this many learners as of the store's last commit, with the product's noise; null
// for a learner without one.
Result<std::vector<std::unique_ptr<train::PrivateQuality>>> MakeQualities(
    const std::vector<QualityPlan>& plans, size_t learners, const store::Store& store,
    const std::string& topic);

}  // namespace tacit::wiring
