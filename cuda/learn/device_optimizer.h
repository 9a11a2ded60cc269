#pragma once

#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/rows/finish.h"
#include "store/types/delta.h"
#include "train/optimizer/optimizer.h"

namespace tacit::cuda {

// The dense parameters and their optimiser on the device, and the rule that each step's last
// kernels follow. It keeps the state that train::Optimizer keeps, laid out as that lays it out.
class DeviceOptimizer {
 public:
  // Copies the state to the device. Fails with kRefused for a kind that has no device form.
  static Result<DeviceOptimizer> Make(Stream& stream, const train::OptimizerOptions& options,
                                      const store::DenseState& dense);

  // Goes on from another state of the same sizes, in the same memory.
  Status Load(const store::DenseState& dense);

  // Adds the device memory that Make takes, of a kind that has a device form, for this number of
  // parameters.
  static void Plan(const train::OptimizerOptions& options, size_t parameters, MemoryNeed* need);

  // Begins a step whose update has noise of this deviation on each number, and puts its rule into
  // device memory. The rate of dense parameters is multiplied by the factor. REQUIRES that the
  // stream has run the last step's.
  Status BeginStep(double noise_stddev, double rate_factor = 1);
  // The rule of the step that was begun, always in the same place.
  DeviceSpan<const OptimizerRule> rule() const { return rule_on_device_.span(); }
  DeviceSpan<float> weights() const { return weights_.span(); }
  DenseParameters parameters() const;

  // Copies parameters and state to `dense`.
  Status Settle(store::DenseState* dense);
  // The same in two parts: puts the copies on the stream; and, once it has run, fills `dense`.
  Status SendHome();
  void ReadHome(store::DenseState* dense) const;

 private:
  DeviceOptimizer(Stream& stream, const train::OptimizerOptions& options)
      : stream_(&stream), options_(options), average_(options.average_decay) {}
  bool stores_steps() const;

  Stream* stream_;
  train::OptimizerOptions options_;
  MovingAverage average_;
  size_t size_ = 0, moments_ = 0;  // numbers; floats of state for each
  OptimizerRule rule_;
  uint32_t step_ = 0;
  float noise_average_ = 0;  // of the noise's variance, for adam-bc
  HostBuffer<OptimizerRule> staging_;
  HostBuffer<float> home_;
  Buffer<OptimizerRule> rule_on_device_;
  Buffer<float> weights_, state_, averages_;
};

}  // namespace tacit::cuda
