// Takes the place of tacit_noise_secure: its noise, and a record of each sum that the noise is
// added to.
#include "sim/trainer/recorded_noise.h"

#include <algorithm>
#include <cstdlib>

#include "base/threads/worker_pool.h"
#include "noise/declared.h"
#include "noise/forwarded_noise.h"
#include "noise/stream_noise.h"

namespace tacit::sim {
namespace {

Draws* recorded_to = nullptr;

class RecordedNoise final : public noise::ForwardedNoise {
 public:
  void Declare(const noise::Declared& declared) override { bound_ = declared.bound; }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    inner_.AddGridGaussian(stddev, values);
    if (recorded_to == nullptr) return;
    if (recorded_to->count == Draws::kMost || values.size() > Draws::kNumbersMost) std::abort();
    Draws::Draw& draw = recorded_to->list[recorded_to->count];
    draw.bound = bound_;
    draw.size = static_cast<uint32_t>(values.size());
    std::ranges::copy(values, draw.noised.begin());
    ++recorded_to->count;
  }
  void ForParts(size_t n, const Part& part) override {
    if (n > 0) part(0, n, *this);
  }

 private:
  NoiseSource& to() override { return inner_; }

  noise::StreamNoise inner_;
  double bound_ = 0;
};

}  // namespace

void RecordDraws(Draws* to) { recorded_to = to; }

}  // namespace tacit::sim

namespace tacit::noise {

std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<sim::RecordedNoise>(); }
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool&) { return MakeNoiseSource(); }

}  // namespace tacit::noise
