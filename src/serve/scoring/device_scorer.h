#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "metrics/registry.h"
#include "model/pctr_device.h"
#include "serve/scoring/click_scorer.h"
#include "serve/scoring/row_scorer.h"

namespace tacit::serve {

// A device that scores one model's large requests, for all threads. The first error that is the
// device's own ends it: from there on the model is scored on the processor. Thread-safe.
class ScoringDevice {
 public:
  // Requests of at least `rows_least` rows go to the device. `registry` gets the operator's
  // metrics; both must outlive this.
  ScoringDevice(std::unique_ptr<model::PctrDevice> device, size_t rows_least, std::string learner,
                metrics::Registry& registry);

  bool Takes(size_t rows) const {
    return rows >= rows_least_ && rows > 0 && works_.load(std::memory_order_relaxed);
  }
  model::PctrDevice& device() { return *device_; }
  void Count(size_t rows) const { scored_.Add(static_cast<double>(rows)); }
  // Ends it, and warns once.
  void Drop(const Error& why);

 private:
  const std::unique_ptr<model::PctrDevice> device_;
  const size_t rows_least_;
  const std::string learner_;
  const metrics::Gauge used_;
  const metrics::Counter scored_;
  std::atomic<bool> works_ = true;
};

// The kind of MakeClickModel, with a device for its large requests. What the device cannot do,
// its own errors and requests too large for it, the processor does: an answer never fails for want
// of the device.
std::shared_ptr<const RowModel> MakeClickModelOn(
    std::shared_ptr<ScoringDevice> device, LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform, const model::PctrOptions& options);

}  // namespace tacit::serve
