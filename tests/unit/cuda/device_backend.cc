#include "unit/cuda/device_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/dense/norms.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "ops/shapes.h"
#include "ops/unit_ops.h"

namespace tacit::cuda {
namespace {

using ops::Bf16;
using ops::ConstMatrix;
using ops::ConstMatrix16;
using ops::Matrix;
using ops::Matrix16;
using ops::MatrixView;

void Must(const Status& status) { TACIT_CHECK(status.has_value(), status.error().message); }

// A matrix in device memory, and what was uploaded or will be downloaded, which must live until the
// stream has run.
template <class T>
struct Placed {
  Buffer<T> buffer;
  std::vector<T> staging;
  DeviceMatrix<T> view;
};

class DeviceBackend final : public ops::Backend {
 public:
  DeviceBackend(std::unique_ptr<Device> device, Stream stream)
      : device_(std::move(device)), stream_(std::move(stream)) {}

  const char* name() const override { return "device"; }
  bool has_fast_bf16() const override { return true; }
  WorkerPool& workers() override { return workers_; }
  std::unique_ptr<ops::UnitOps> MakeUnitOps(ops::Precision precision) const override {
    return ops::MakeReferenceUnitOps(precision);
  }

  Status Gemm(ops::Transpose ta, ConstMatrix a, ops::Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    return Multiply(Gemm32, ta, a, tb, b, beta, c);
  }
  Status Gemm16(ops::Transpose ta, ConstMatrix16 a, ops::Transpose tb, ConstMatrix16 b, float beta,
                Matrix c) override {
    return Multiply(cuda::Gemm16, ta, a, tb, b, beta, c);
  }
  Status AddBlockSums(const ops::SumPieces& pieces, ConstMatrix a, ConstMatrix g, double step,
                      MatrixView<int64_t> sums) override {
    return SumBlocks(Gemm32Pieces, pieces, a, g, step, sums);
  }
  Status AddBlockSums16(const ops::SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g, double step,
                        MatrixView<int64_t> sums) override {
    return SumBlocks(Gemm16Pieces, pieces, a, g, step, sums);
  }
  void Round16(ConstMatrix in, Matrix16 out) override { AddBias16(in, {}, false, out); }

  void AddBias(Matrix x, std::span<const float> bias, bool relu) override {
    Bias<float>(x, bias, relu, x);
  }
  void AddBias16(ConstMatrix x, std::span<const float> bias, bool relu, Matrix16 out) override {
    Bias<Bf16>(x, bias, relu, out);
  }
  void ReluBackward(ConstMatrix activation, Matrix grad) override {
    Relu<float>(activation, grad, grad);
  }
  void ReluBackward16(ConstMatrix16 activation, ConstMatrix grad, Matrix16 out) override {
    Relu<Bf16>(activation, grad, out);
  }
  void ScaleRows(std::span<const float> scale, ConstMatrix x, Matrix out) override {
    Scale<float>(scale, x, out);
  }
  void ScaleRows16(std::span<const float> scale, ConstMatrix16 x, Matrix16 out) override {
    Scale<Bf16>(scale, x, out);
  }

  void RowSquaredNorms(ConstMatrix x, std::span<float> out) override {
    const auto from = Upload(x);
    const auto norms = Make<float>(out.size());
    Must(cuda::RowSquaredNorms(stream_, from.view, norms.span()));
    Download(norms, out);
  }
  void UnitSquaredNorms(std::span<const uint32_t> unit_end, ConstMatrix a, ConstMatrix g,
                        std::span<float> out) override {
    UnitNorms<float>(unit_end, a, g, out);
  }
  void UnitSquaredNorms16(std::span<const uint32_t> unit_end, ConstMatrix16 a, ConstMatrix16 g,
                          std::span<float> out) override {
    UnitNorms<Bf16>(unit_end, a, g, out);
  }
  void ColumnSums(ConstMatrix x, std::span<float> out) override {
    const auto from = Upload(x);
    const auto sums = Upload<float>(out);
    Must(cuda::ColumnSums(stream_, from.view, sums.span()));
    Download(sums, out);
  }
  void LogisticLoss(std::span<const float> logit, std::span<const float> label,
                    std::span<float> loss, std::span<float> dlogit) override {
    const auto logits = Upload<float>(logit), labels = Upload<float>(label);
    const auto losses = Make<float>(loss.size()), derivatives = Make<float>(dlogit.size());
    Must(cuda::LogisticLoss(stream_, logits.span(), labels.span(), losses.span(),
                            derivatives.span()));
    Download(losses, loss);
    Download(derivatives, dlogit);
  }
  void GatherSum(const Slots& slots, std::span<float* const> row, Matrix x) override;

 private:
  template <class T>
  Buffer<T> Make(size_t n) {
    auto buffer = Buffer<T>::Make(*device_, n);
    TACIT_CHECK(buffer.has_value(), buffer.error().message);
    return std::move(*buffer);
  }
  template <class T>
  Buffer<T> Upload(std::type_identity_t<std::span<const T>> values) {
    Buffer<T> buffer = Make<T>(values.size());
    Must(stream_.Upload<T>(values, buffer.span()));
    Must(stream_.Synchronize());
    return buffer;
  }
  template <class T>
  void Download(const Buffer<T>& from, std::span<T> to) {
    Must(stream_.Download(from.span(), to));
    Must(stream_.Synchronize());
  }

  // Rows begin at multiples of 16 bytes; between them lie numbers that are none, which would show
  // in every result that they enter.
  template <class T>
  Placed<T> Place(size_t rows, size_t cols) {
    const size_t stride = std::max<size_t>(8, (cols + 7) / 8 * 8);
    Placed<T> placed;
    placed.staging.resize(rows * stride);
    if (rows > 0) std::memset(placed.staging.data(), 0xff, rows * stride * sizeof(T));
    placed.buffer = Make<T>(rows * stride);
    placed.view = {placed.buffer.span().data, static_cast<uint32_t>(rows),
                   static_cast<uint32_t>(cols), stride};
    return placed;
  }
  template <class T>
  Placed<std::remove_const_t<T>> Upload(const MatrixView<T>& x) {
    auto placed = Place<std::remove_const_t<T>>(x.rows, x.cols);
    for (size_t r = 0; r < x.rows; ++r)
      std::copy_n(x.Row(r), x.cols, placed.staging.data() + r * placed.view.stride);
    Must(stream_.Upload<std::remove_const_t<T>>(placed.staging, placed.buffer.span()));
    return placed;
  }
  template <class T>
  void Download(Placed<T>& from, const MatrixView<T>& x) {
    Must(stream_.Download(from.buffer.span(), std::span<T>(from.staging)));
    Must(stream_.Synchronize());
    for (size_t r = 0; r < x.rows; ++r)
      std::copy_n(from.staging.data() + r * from.view.stride, x.cols, x.Row(r));
  }

  template <class T, class Product>
  Status Multiply(Product product, ops::Transpose ta, MatrixView<const T> a, ops::Transpose tb,
                  MatrixView<const T> b, float beta, Matrix c) {
    const ops::GemmShape shape = ops::ShapeOf(ta, a, tb, b, c);
    const auto m = static_cast<uint32_t>(shape.m), n = static_cast<uint32_t>(shape.n);
    const auto from_a = Upload(a), from_b = Upload(b);
    auto to = Upload(c);
    const DeviceFacts& facts = device_->facts();
    GemmPlan plan = PlanGemm(facts.multiprocessors, m, n, static_cast<uint32_t>(shape.k),
                             sizeof(T) == 2 ? OwnWay(facts) : GemmWay::kMma);
    if (ta == ops::Transpose::kNo) plan.splits = 1;  // how many would depend on the rows
    const auto work = Make<float>(GemmWorkFloats(plan, m, n));
    TACIT_RETURN_IF_ERROR(product(stream_, static_cast<Form>(ta), from_a.view,
                                  static_cast<Form>(tb), from_b.view, beta, to.view, plan,
                                  work.span()));
    Download(to, c);
    return {};
  }
  template <class T, class Product>
  Status SumBlocks(Product product, const ops::SumPieces& pieces, MatrixView<const T> a,
                   MatrixView<const T> g, double step, MatrixView<int64_t> sums) {
    ops::CheckBlockSums(pieces, a, g, sums);
    const auto from_a = Upload(a), from_g = Upload(g);
    const auto ends = Upload<uint32_t>(pieces.end);
    const auto closes =
        Upload<uint32_t>(std::vector<uint32_t>(pieces.closes.begin(), pieces.closes.end()));
    const size_t numbers = sums.rows * sums.cols;
    std::vector<int64_t> added(numbers, 0);
    const auto open = Upload<double>(std::vector<double>(numbers, 0));
    const auto steps = Upload<int64_t>(added);
    const auto work = Make<float>(pieces.end.size() * numbers);
    const GemmPieces all{.end = ends.span(), .count = static_cast<uint32_t>(pieces.end.size())};
    TACIT_RETURN_IF_ERROR(product(stream_, from_a.view, from_g.view, all, work.span()));
    TACIT_RETURN_IF_ERROR(
        AddPieces(stream_, all, closes.span(), work.span(), 1 / step, open.span(), steps.span()));
    Download(steps, std::span(added));
    for (size_t r = 0; r < sums.rows; ++r)
      for (size_t c = 0; c < sums.cols; ++c) sums.Row(r)[c] += added[r * sums.cols + c];
    return {};
  }
  template <class T>
  void Bias(ConstMatrix x, std::span<const float> bias, bool relu, MatrixView<T> out) {
    ops::CheckSameShape(x, out);
    const auto from = Upload(x);
    const auto biases = Upload<float>(bias);
    auto to = Place<T>(out.rows, out.cols);
    Must(cuda::AddBias<T>(stream_, from.view, biases.span(), relu, to.view));
    Download(to, out);
  }
  template <class T>
  void Relu(MatrixView<const T> activation, ConstMatrix grad, MatrixView<T> out) {
    const auto from = Upload(activation);
    const auto gradient = Upload(grad);
    auto to = Place<T>(out.rows, out.cols);
    Must(cuda::ReluBackward<T>(stream_, from.view, gradient.view, to.view));
    Download(to, out);
  }
  template <class T>
  void Scale(std::span<const float> scale, MatrixView<const T> x, MatrixView<T> out) {
    const auto from = Upload(x);
    const auto scales = Upload<float>(scale);
    auto to = Place<T>(out.rows, out.cols);
    Must(cuda::ScaleRows<T>(stream_, scales.span(), from.view, to.view));
    Download(to, out);
  }
  template <class T>
  void UnitNorms(std::span<const uint32_t> unit_end, MatrixView<const T> a, MatrixView<const T> g,
                 std::span<float> out) {
    ops::CheckUnits(unit_end, a.rows, out.size());
    const auto from_a = Upload(a), from_g = Upload(g);
    const auto ends = Upload<uint32_t>(unit_end);
    const auto own = Make<double>(a.rows), squares = Make<double>(2 * a.rows);
    const auto norms = Make<float>(out.size());
    const auto rows = static_cast<uint32_t>(a.rows);
    const RowSquares of_a(squares.span().data, 1, rows, rows),
        of_g(of_a.data + rows, 1, rows, rows);
    Must(SquareRows<T>(stream_, from_a.view, of_a));
    Must(SquareRows<T>(stream_, from_g.view, of_g));
    Must(RowGradientNorms(stream_, of_a, of_g, own.span()));
    Must(cuda::UnitSquaredNorms<T>(stream_, ends.span(), from_a.view, from_g.view, own.span(),
                                   norms.span()));
    Download(norms, out);
  }

  std::unique_ptr<Device> device_;
  Stream stream_;
  WorkerPool workers_{WorkerPool::Options{}};
};

void DeviceBackend::GatherSum(const Slots& slots, std::span<float* const> row, Matrix x) {
  ops::CheckSlots(slots, x);
  const size_t count = slots.dim.size();
  const uint32_t stride = count == 0 ? 0 : *std::ranges::max_element(slots.dim);
  // As much of each row as one of its slots reads.
  std::vector<float> table(row.size() * stride);
  for (size_t cell = 0, e = 0; cell < slots.slot_end.size(); ++cell)
    for (; e < slots.slot_end[cell]; ++e)
      std::copy_n(row[slots.slot_row[e]], slots.dim[cell % count],
                  table.data() + size_t{slots.slot_row[e]} * stride);
  const auto rows = Upload<float>(table);
  std::vector<DeviceSlot> of_slot;
  std::vector<uint32_t> slot_of;
  for (size_t s = 0; s < count; ++s) {
    TACIT_CHECK(slots.column[s] == slot_of.size(), "slots lie side by side");
    of_slot.push_back({.rows = rows.span().data,
                       .stride = stride,
                       .first = 0,
                       .dim = slots.dim[s],
                       .column = slots.column[s]});
    slot_of.insert(slot_of.end(), slots.dim[s], static_cast<uint32_t>(s));
  }
  const auto on_device = Upload<DeviceSlot>(of_slot);
  const auto columns = Upload<uint32_t>(slot_of), ends = Upload<uint32_t>(slots.slot_end),
             entries = Upload<uint32_t>(slots.slot_row);
  auto to = Upload(x);
  const DeviceMatrix<float> embedded(to.view.data, to.view.rows,
                                     static_cast<uint32_t>(slot_of.size()), to.view.stride);
  Must(cuda::GatherSum<float>(stream_,
                              {.slots = on_device.span(),
                               .slot_of = columns.span(),
                               .cell_end = ends.span(),
                               .name = entries.span()},
                              embedded));
  Download(to, x);
}

}  // namespace

Result<std::unique_ptr<ops::Backend>> MakeDeviceBackend(std::unique_ptr<Device> device) {
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  return std::unique_ptr<ops::Backend>(
      std::make_unique<DeviceBackend>(std::move(device), std::move(stream)));
}

}  // namespace tacit::cuda
