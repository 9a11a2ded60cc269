#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/score_histogram.h"
#include "http/http.h"
#include "metrics/registry.h"
#include "privacy/ledger.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// A learner whose private quality is shown, and the account that has it. A value type.
struct ServedQuality {
  std::string learner;
  LearnerIndex index;  // of the account
  privacy::Promise promise;
};

// Answers GET /v1/quality: what was released of how well learners predict.
void AnswerQuality(const store::Snapshot& snapshot, const std::vector<ServedQuality>& qualities,
                   http::Reply* reply);

// Registers the same figures of all windows together, for everybody.
class QualityMetrics {
 public:
  QualityMetrics(metrics::Registry& registry, std::vector<ServedQuality> qualities);
  void Show(const store::Snapshot& snapshot) const;

 private:
  struct Gauges {
    metrics::Gauge auc, auc_deviation, calibration, calibration_deviation, windows;
  };
  std::vector<ServedQuality> qualities_;
  std::vector<Gauges> gauges_;
};

}  // namespace tacit::serve
