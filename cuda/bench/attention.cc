// Attention of a transformer's block by itself, bf16, users of one full window each. Its limit is
// the longer of two times: that of its bytes at the rate of copies, and that of its products, half
// of which the causal mask leaves, at the rate of those with the catalogue.
#include "cuda/kernels/sequence/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cuda/bench/parts.h"
#include "cuda/bench/products.h"
#include "cuda/bench/timing.h"
#include "cuda/kernels/noise/noise.h"

namespace tacit::cuda {
namespace {

// A matrix of normal numbers.
struct Numbers {
  Buffer<float> memory;
  DeviceMatrix<float> matrix;

  static Result<Numbers> Make(Stream& stream, uint32_t rows, uint32_t cols) {
    Numbers made;
    TACIT_ASSIGN(made.memory, Buffer<float>::Make(stream.device(), uint64_t{rows} * cols));
    made.matrix = {made.memory.span().data, rows, cols, cols};
    TACIT_ASSIGN(const auto key, Buffer<NoiseKey>::Make(stream.device(), 1));
    TACIT_RETURN_IF_ERROR(stream.Fill(key.span(), static_cast<uint8_t>(cols)));
    constexpr double kDeviation = 1 << 20;
    TACIT_RETURN_IF_ERROR(FillGridNoise(stream, key.span(), NoiseQuery::kDense, kDeviation,
                                        1 / kDeviation, made.memory.span()));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
    return made;
  }
};

// The rates that limits are made of.
struct Rates {
  double bytes = 0, operations = 0;  // a second

  static Result<Rates> Measure(const GpuSizes& sizes, Stream& stream) {
    TACIT_ASSIGN(const auto products, StepProducts::Make(stream, {{sizes.width, sizes.catalogue}},
                                                         sizes.sequences * sizes.length));
    TACIT_ASSIGN(const double time, SecondsAsGraph(stream, sizes.seconds,
                                                   [&](Stream& on) { return products->Put(on); }));
    TACIT_ASSIGN(const double copy, CopyRate(stream, sizes.seconds, sizes.copy_bytes));
    return Rates{copy, products->operations() / time};
  }
};

// The passes of one block, all units at once.
class Passes {
 public:
  static Result<Passes> Make(Stream& stream, const GpuSizes& sizes, bool corrected) {
    Passes made;
    const uint32_t rows = sizes.sequences * sizes.length, width = sizes.width;
    std::vector<uint32_t> ends(sizes.sequences);
    for (uint32_t c = 0; c < sizes.sequences; ++c) ends[c] = (c + 1) * sizes.length;
    TACIT_ASSIGN(made.ends_, Buffer<uint32_t>::Make(stream.device(), ends.size()));
    TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(ends, made.ends_.span()));
    made.shape_ = {.crop_end = made.ends_.span(),
                   .longest = sizes.length,
                   .heads = 1,
                   .rounds = true,
                   .corrected = corrected};
    TACIT_ASSIGN(made.qkv_, Numbers::Make(stream, rows, 3 * width));
    TACIT_ASSIGN(made.out_, Numbers::Make(stream, rows, width));
    TACIT_ASSIGN(made.grad_, Numbers::Make(stream, rows, width));
    TACIT_ASSIGN(made.variance_, Numbers::Make(stream, rows, width));
    TACIT_ASSIGN(made.qkv_grad_, Numbers::Make(stream, rows, 3 * width));
    TACIT_ASSIGN(made.kept_, Numbers::Make(stream, rows, KeptNumbers(made.shape_, width)));
    TACIT_ASSIGN(made.work_, Numbers::Make(stream, rows, WorkNumbers(made.shape_, width)));
    return made;
  }
  Status Forward(Stream& stream) const {
    AttentionCorrection correction;
    if (shape_.corrected) correction = {variance_.matrix, 0.01f, 8};
    return Attend(stream, shape_, qkv_.matrix, correction, kept_.matrix, out_.matrix);
  }
  Status Backward(Stream& stream) const {
    return AttendBackward(stream, shape_, qkv_.matrix, kept_.matrix, grad_.matrix, work_.matrix,
                          qkv_grad_.matrix);
  }

 private:
  Buffer<uint32_t> ends_;
  AttentionShape shape_;
  Numbers qkv_, out_, grad_, variance_, qkv_grad_, kept_, work_;
};

}  // namespace

Result<std::vector<bench::BenchRow>> BenchAttention(const GpuSizes& sizes) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  TACIT_ASSIGN(const Rates rates, Rates::Measure(sizes, stream));
  const double numbers = double{1} * sizes.sequences * sizes.length * sizes.width;
  // A product has two operations a number of a head, for each of n^2 / 2 pairs.
  const double product = numbers * sizes.length;
  struct Pass {
    std::string_view name;
    Status (Passes::*put)(Stream&) const;
    double matrices, products;  // that are read or written once, and that it needs
  };
  constexpr Pass kForward{"forward", &Passes::Forward, 4, 2};
  constexpr Pass kBackward{"backward", &Passes::Backward, 7, 5};
  std::vector<bench::BenchRow> rows;
  for (const bool corrected : {false, true}) {
    TACIT_ASSIGN(const Passes passes, Passes::Make(stream, sizes, corrected));
    for (const Pass& pass : {kForward, kBackward}) {
      TACIT_ASSIGN(const double time, SecondsAsGraph(stream, sizes.seconds, [&](Stream& on) {
                     return (passes.*pass.put)(on);
                   }));
      const double bytes = 4 * pass.matrices * numbers / rates.bytes;
      const double products = pass.products * product / rates.operations;
      rows.push_back(
          {fmt::format("gpu-attention-{}{}", corrected ? "corrected-" : "", pass.name),
           sizes.sequences / time,
           "sequences/s",
           sizes.sequences / std::max(bytes, products),
           {{"us", time * 1e6}, {"bytes_us", bytes * 1e6}, {"products_us", products * 1e6}},
           fmt::format("{:.0f} us; bytes {:.0f}, products {:.0f}", time * 1e6, bytes * 1e6,
                       products * 1e6)});
    }
  }
  TACIT_RETURN_IF_ERROR(device->Health());
  return rows;
}

}  // namespace tacit::cuda
