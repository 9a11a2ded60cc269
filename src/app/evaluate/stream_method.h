#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/evaluate/sequence_method.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "noise/noise.h"

namespace tacit::app {

// What users did in one period of a stream. Views of what must outlive it.
struct StreamPeriod {
  // Of each user what is known, then what is new; and who he is, whoever else is in the period or
  // the stream: public coins follow from that.
  const model::Histories& histories;
  // Of each history, how many items were there before the period, up to a method's context(). They
  // are nothing but what new ones may be predicted from.
  std::span<const uint32_t> known;
};

// A way to recommend the next item that learns as it goes on: the seam of `tacit evaluate sequence
// --stream`.
class StreamMethod {
 public:
  virtual ~StreamMethod() = default;

  // Items of a user from before a period that help to learn from it.
  virtual uint32_t context() const { return 0; }
  // Learns from a period, spending at most `mu` on each user who is in it, infinite for no noise.
  // What was really spent, as mu^2. `noise` is used on this thread.
  virtual Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                               WorkerPool& workers) = 0;
  // A score for every item of the catalogue, of what may follow this history. From any thread.
  // REQUIRES a period that was learnt.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

// What runs of a method over a stream are known by: its name and all its constants.
std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting);
// kInvalidArgument for a learner of sequence_method.h that learns from everybody at once.
Status CheckStreamMethod(std::string_view name);
// REQUIRES a name that was checked. `setting`'s catalogue and `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting, WorkerPool& workers);

}  // namespace tacit::app
