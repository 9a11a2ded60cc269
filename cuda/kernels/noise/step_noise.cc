#include "cuda/kernels/noise/step_noise.h"

#include <span>

#include "base/check.h"
#include "noise/declared.h"

namespace tacit::cuda {
namespace {

std::span<uint8_t, 32> Bytes(NoiseKey& key) {
  static_assert(sizeof(NoiseKey) == 32);
  return std::span<uint8_t, 32>(reinterpret_cast<uint8_t*>(key.words), 32);
}

// Overwrites the key; the compiler must not leave that out, although nothing reads the zeros.
void Wipe(NoiseKey& key) {
  for (uint32_t& word : key.words) *static_cast<volatile uint32_t*>(&word) = 0;
}

}  // namespace

Result<StepNoise> StepNoise::Make(Stream& stream) {
  TACIT_ASSIGN(auto key, Buffer<NoiseKey>::Make(stream.device(), 1));
  TACIT_ASSIGN(auto staging, HostBuffer<NoiseKey>::Make(stream.device(), 1));
  Wipe(staging.span()[0]);
  TACIT_ASSIGN(Event ended, Event::Make(stream.device()));
  return StepNoise(stream, std::move(key), std::move(staging), std::move(ended));
}

StepNoise::~StepNoise() {
  if (staging_.span().empty()) return;  // moved from
  if (begun_) (void)End();
  (void)stream_->Synchronize();
  Wipe(staging_.span()[0]);
}

Status StepNoise::Begin(noise::NoiseSource& source) {
  TACIT_CHECK(!begun_, "a step's noise begins before the last one's key is gone");
  // The end of the last step writes to the staging buffer. Work of this step may be under way
  // already, and is not waited for.
  TACIT_RETURN_IF_ERROR(ended_.Synchronize());
  const noise::Declaration declared(source, {"key of a device"});
  source.FillKey(Bytes(staging_.span()[0]));
  begun_ = true;
  dense_drawn_ = false;
  row_dim_ = 0;
  return stream_->Upload<NoiseKey>(staging_.span(), key_.span());
}

Status StepNoise::AddToDense(double stddev, DeviceSpan<int64_t> values) {
  TACIT_CHECK(begun_, "noise without a key");
  TACIT_CHECK(!dense_drawn_, "the same noise for two releases");
  dense_drawn_ = true;
  return AddGridNoise(*stream_, key_.span(), NoiseQuery::kDense, stddev, values);
}

Status StepNoise::AddToRows(double stddev, DeviceSpan<const uint64_t> rows, uint32_t dim,
                            DeviceSpan<int64_t> values) {
  TACIT_CHECK(begun_, "noise without a key");
  TACIT_CHECK(row_dim_ == 0 || row_dim_ == dim, "rows of two widths would share their noise");
  row_dim_ = dim;
  return AddGridNoiseToRows(*stream_, key_.span(), NoiseQuery::kRows, stddev, rows, dim, values);
}

DeviceSpan<const NoiseKey> StepNoise::key() const {
  TACIT_CHECK(begun_, "noise without a key");
  return key_.span();
}

Status StepNoise::End() {
  TACIT_CHECK(begun_, "a step's noise ends that has not begun");
  begun_ = false;
  TACIT_RETURN_IF_ERROR(WipeKey(*stream_, key_.span()));
  // Copies the zeros over the host's copy, after the upload that reads that copy.
  TACIT_RETURN_IF_ERROR(stream_->Download<NoiseKey>(key_.span(), staging_.span()));
  return stream_->Record(ended_);
}

}  // namespace tacit::cuda
