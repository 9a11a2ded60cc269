#include "cuda/bench/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/bench_data.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/steps.h"
#include "cuda/bench/timing.h"
#include "cuda/kernels/dense/norms.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "cuda/kernels/gemm/gemm_library.h"
#include "cuda/kernels/noise/noise.h"

namespace tacit::cuda {
namespace {

// A bf16 matrix of normal numbers.
struct Random16 {
  Buffer<uint16_t> memory;
  DeviceMatrix<uint16_t> matrix;

  static Result<Random16> Make(Stream& stream, uint32_t rows, uint32_t cols) {
    Device& device = stream.device();
    const uint64_t stride = (cols + 7) / 8 * 8;
    Random16 made;
    TACIT_ASSIGN(made.memory, Buffer<uint16_t>::Make(device, rows * stride));
    made.matrix = {made.memory.span().data, rows, cols, stride};
    TACIT_ASSIGN(const auto key, Buffer<NoiseKey>::Make(device, 1));
    TACIT_ASSIGN(const auto floats, Buffer<float>::Make(device, rows * stride));
    constexpr double kDeviation = 1 << 20;
    TACIT_RETURN_IF_ERROR(stream.Fill(key.span(), static_cast<uint8_t>(rows + cols)));
    TACIT_RETURN_IF_ERROR(FillGridNoise(stream, key.span(), NoiseQuery::kDense, kDeviation,
                                        1 / kDeviation, floats.span()));
    MatrixList<uint16_t> rounded(made.matrix);
    TACIT_RETURN_IF_ERROR(RoundAll(
        stream, DeviceMatrix<const float>(floats.span().data, rows, cols, stride), rounded));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
    return made;
  }
};

// One way of our own, or the library.
struct Multiplier {
  GemmWay way = GemmWay::kMma;
  Blas* library = nullptr;
  uint32_t tile = 0;  // 0: as it is planned

  std::string name() const {
    if (library != nullptr) return "cublas";
    const char* const own = way == GemmWay::kMma ? "mma" : "wgmma";
    return tile == 0 ? own : fmt::format("{}-{}", own, tile);
  }
  GemmPlan Plan(Device& device, uint32_t m, uint32_t n, uint32_t k) const {
    GemmPlan plan = PlanGemm(device.facts().multiprocessors, m, n, k, way);
    if (tile != 0) plan.tile = tile;
    return plan;
  }
};

// One product, with memory for what it makes.
class Product {
 public:
  static Result<Product> Make(Stream& stream, Form form_a, DeviceMatrix<const uint16_t> a,
                              Form form_b, DeviceMatrix<const uint16_t> b, const Multiplier& by) {
    Product made;
    made.library_ = by.library;
    made.form_a_ = form_a, made.form_b_ = form_b;
    made.a_ = a, made.b_ = b;
    const bool turned_a = form_a == Form::kTransposed, turned_b = form_b == Form::kTransposed;
    const uint32_t m = turned_a ? a.cols : a.rows, k = turned_a ? a.rows : a.cols,
                   n = turned_b ? b.rows : b.cols;
    Device& device = stream.device();
    made.plan_ = by.Plan(device, m, n, k);
    TACIT_ASSIGN(made.c_memory_, Buffer<float>::Make(device, uint64_t{m} * n));
    TACIT_ASSIGN(made.work_, Buffer<float>::Make(device, GemmWorkFloats(made.plan_, m, n)));
    made.c_ = {made.c_memory_.span().data, m, n, n};
    made.operations_ = 2.0 * m * n * k;
    return made;
  }
  Status Put(Stream& stream) const {
    if (library_ != nullptr) return GemmByLibrary(*library_, form_a_, a_, form_b_, b_, 0, c_);
    return Gemm16(stream, form_a_, a_, form_b_, b_, 0, c_, plan_, work_.span());
  }
  double operations() const { return operations_; }

 private:
  Blas* library_ = nullptr;
  Form form_a_ = Form::kAsIs, form_b_ = Form::kAsIs;
  DeviceMatrix<const uint16_t> a_, b_;
  GemmPlan plan_;
  Buffer<float> c_memory_, work_;
  DeviceMatrix<float> c_;
  double operations_ = 0;
};

// Two products of a layer with their ends: the next layer's inputs, and the gradient behind ReLU.
class LayerEnds {
 public:
  static Result<LayerEnds> Make(Stream& stream, const ProductLayer& layer, uint32_t rows,
                                const Multiplier& by) {
    LayerEnds made;
    made.library_ = by.library;
    made.forward_ = by.Plan(stream.device(), rows, layer.out, layer.in);
    made.backward_ = by.Plan(stream.device(), rows, layer.in, layer.out);
    TACIT_ASSIGN(made.inputs_, Random16::Make(stream, rows, layer.in));
    TACIT_ASSIGN(made.gradient_, Random16::Make(stream, rows, layer.out));
    TACIT_ASSIGN(made.weights_, Random16::Make(stream, layer.in, layer.out));
    TACIT_ASSIGN(made.activated_, Random16::Make(stream, rows, layer.out));
    TACIT_ASSIGN(made.masked_, Random16::Make(stream, rows, layer.in));
    const uint32_t widest = std::max(layer.in, layer.out);
    TACIT_ASSIGN(made.sums_, Buffer<float>::Make(stream.device(), uint64_t{rows} * widest));
    TACIT_ASSIGN(made.bias_, Buffer<float>::Make(stream.device(), layer.out));
    TACIT_RETURN_IF_ERROR(stream.Fill(made.bias_.span(), 0));
    const size_t work = std::max(GemmWorkFloats(made.forward_, rows, layer.out),
                                 GemmWorkFloats(made.backward_, rows, layer.in));
    TACIT_ASSIGN(made.work_, Buffer<float>::Make(stream.device(), work));
    if (!made.are()) return made;
    const auto square = [&](const GemmPlan& plan, uint32_t cols, Buffer<double>* memory,
                            RowSquares* squares) -> Status {
      const uint32_t parts = SquaresParts(plan, cols);
      TACIT_ASSIGN(*memory, Buffer<double>::Make(stream.device(), uint64_t{parts} * rows));
      *squares = {memory->span().data, parts, rows, rows};
      return {};
    };
    TACIT_RETURN_IF_ERROR(
        square(made.forward_, layer.out, &made.forward_memory_, &made.of_activated_));
    TACIT_RETURN_IF_ERROR(
        square(made.backward_, layer.in, &made.backward_memory_, &made.of_masked_));
    return made;
  }
  // Says whether there are such ends: not for the library's products, nor for those that are split.
  bool are() const { return library_ == nullptr && forward_.splits == 1 && backward_.splits == 1; }
  Status PutWithEnds(Stream& stream) const { return PutWithEnds(stream, {}, {}); }
  // Ends that leave the squares of what they wrote; and those by a pass of their own.
  Status PutWithSquares(Stream& stream) const {
    return PutWithEnds(stream, of_activated_, of_masked_);
  }
  Status PutSquares(Stream& stream) const {
    MatrixList<const uint16_t> x(activated_.matrix);
    x.Add(masked_.matrix);
    MatrixList<double> squares(FirstPart(of_activated_));
    squares.Add(FirstPart(of_masked_));
    return SquareRows<uint16_t>(stream, x, squares);
  }
  Status PutWithLoops(Stream& stream) const {
    const auto forward = Sums(activated_.matrix), backward = Sums(masked_.matrix);
    TACIT_RETURN_IF_ERROR(Multiply(stream, inputs_.matrix, Form::kAsIs, forward, forward_));
    TACIT_RETURN_IF_ERROR(
        AddBias<uint16_t>(stream, forward, bias_.span(), true, activated_.matrix));
    TACIT_RETURN_IF_ERROR(
        Multiply(stream, gradient_.matrix, Form::kTransposed, backward, backward_));
    return ReluBackward<uint16_t>(stream, inputs_.matrix, backward, masked_.matrix);
  }

 private:
  static RowSquares FirstPart(const RowSquares& all) { return {all.data, 1, all.cols, all.stride}; }
  Status PutWithEnds(Stream& stream, RowSquares of_activated, RowSquares of_masked) const {
    TACIT_RETURN_IF_ERROR(Gemm16Activate(stream, inputs_.matrix, weights_.matrix, bias_.span(),
                                         activated_.matrix, forward_, of_activated));
    return Gemm16ReluBackward(stream, gradient_.matrix, weights_.matrix, inputs_.matrix,
                              masked_.matrix, backward_, of_masked);
  }
  DeviceMatrix<float> Sums(const DeviceMatrix<uint16_t>& of) const {
    return {sums_.span().data, of.rows, of.cols, of.cols};
  }
  Status Multiply(Stream& stream, DeviceMatrix<const uint16_t> a, Form form_b,
                  DeviceMatrix<float> c, const GemmPlan& plan) const {
    if (library_ != nullptr)
      return GemmByLibrary(*library_, Form::kAsIs, a, form_b, weights_.matrix, 0, c);
    return Gemm16(stream, Form::kAsIs, a, form_b, weights_.matrix, 0, c, plan, work_.span());
  }

  Blas* library_ = nullptr;
  GemmPlan forward_, backward_;
  Random16 inputs_, gradient_, weights_, activated_, masked_;
  Buffer<float> sums_, bias_, work_;
  Buffer<double> forward_memory_, backward_memory_;
  RowSquares of_activated_, of_masked_;
};

class Products final : public StepProducts {
 public:
  Status Take(Stream& stream, const std::vector<ProductLayer>& layers, uint32_t rows,
              const Multiplier& by) {
    by_ = by;
    for (const ProductLayer& layer : layers) {
      TACIT_ASSIGN(auto inputs, Random16::Make(stream, rows, layer.in));
      TACIT_ASSIGN(auto gradient, Random16::Make(stream, rows, layer.out));
      TACIT_ASSIGN(auto weights, Random16::Make(stream, layer.in, layer.out));
      const auto &a = inputs.matrix, &g = gradient.matrix, &w = weights.matrix;
      TACIT_RETURN_IF_ERROR(Add(stream, Form::kAsIs, a, Form::kAsIs, w));
      TACIT_RETURN_IF_ERROR(Add(stream, Form::kAsIs, g, Form::kTransposed, w));
      TACIT_RETURN_IF_ERROR(Add(stream, Form::kTransposed, a, Form::kAsIs, g));
      for (Random16* kept : {&inputs, &gradient, &weights}) kept_.push_back(std::move(*kept));
    }
    return {};
  }
  Status Put(Stream& stream) override {
    for (const Product& product : products_) TACIT_RETURN_IF_ERROR(product.Put(stream));
    return {};
  }
  double operations() const override {
    double all = 0;
    for (const Product& product : products_) all += product.operations();
    return all;
  }
  const std::vector<Product>& each() const { return products_; }

 private:
  Status Add(Stream& stream, Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
             DeviceMatrix<const uint16_t> b) {
    TACIT_ASSIGN(Product product, Product::Make(stream, form_a, a, form_b, b, by_));
    products_.push_back(std::move(product));
    return {};
  }

  Multiplier by_;
  std::vector<Random16> kept_;
  std::vector<Product> products_;
};

// A layer's products with their ends, beside products and loops one after the other.
Status AddEnds(const GpuSizes& sizes, Stream& stream, const ProductLayer& layer, uint64_t batch,
               const Multiplier& by, std::vector<bench::BenchRow>* rows) {
  TACIT_ASSIGN(const auto ends, LayerEnds::Make(stream, layer, static_cast<uint32_t>(batch), by));
  TACIT_ASSIGN(const double loops, SecondsAsGraph(stream, sizes.seconds / 3, [&](Stream& on) {
                 return ends.PutWithLoops(on);
               }));
  bench::BenchRow row{fmt::format("gpu-ends-{}-{}", batch, by.name()), loops * 1e6, "us", {}};
  if (ends.are()) {
    const auto time = [&](const auto& put) {
      return SecondsAsGraph(stream, sizes.seconds / 3, put);
    };
    TACIT_ASSIGN(const double fused, time([&](Stream& on) { return ends.PutWithEnds(on); }));
    TACIT_ASSIGN(const double squares, time([&](Stream& on) { return ends.PutWithSquares(on); }));
    TACIT_ASSIGN(const double pass, time([&](Stream& on) { return ends.PutSquares(on); }));
    row.value = fused * 1e6;
    row.more = {{"loops_us", loops * 1e6}, {"squares_us", squares * 1e6}, {"pass_us", pass * 1e6}};
    row.note = fmt::format("{:.1f} us with loops; {:.1f} with squares, {:.1f} for these in a pass",
                           loops * 1e6, squares * 1e6, pass * 1e6);
  }
  rows->push_back(std::move(row));
  return {};
}

Status AddWay(const GpuSizes& sizes, Stream& stream, const std::vector<ProductLayer>& layers,
              const Multiplier& by, std::vector<bench::BenchRow>* rows) {
  const auto rate = [](const Product& product, double time) {
    return product.operations() / time / 1e12;
  };
  {
    const uint32_t side = sizes.square;
    TACIT_ASSIGN(const auto a, Random16::Make(stream, side, side));
    TACIT_ASSIGN(const auto b, Random16::Make(stream, side, side));
    TACIT_ASSIGN(const Product product,
                 Product::Make(stream, Form::kAsIs, a.matrix, Form::kAsIs, b.matrix, by));
    TACIT_ASSIGN(const double time, SecondsOnDevice(stream, sizes.seconds,
                                                    [&](Stream& on) { return product.Put(on); }));
    rows->push_back(
        {fmt::format("gpu-product-square-{}", by.name()), rate(product, time), "TFLOP/s", {}});
  }
  for (const uint64_t batch : sizes.batches) {
    Products products;
    TACIT_RETURN_IF_ERROR(products.Take(stream, layers, static_cast<uint32_t>(batch), by));
    TACIT_ASSIGN(const double all, SecondsAsGraph(stream, sizes.seconds,
                                                  [&](Stream& on) { return products.Put(on); }));
    const double all_rate = products.operations() / all / 1e12;
    rows->push_back({fmt::format("gpu-products-{}-{}", batch, by.name()),
                     all * 1e6,
                     "us",
                     {},
                     {{"products", products.each().size()}, {"tflops", all_rate}},
                     fmt::format("{:.0f} TFLOP/s", all_rate)});
    // The second layer's: the middle of the network has such layers alone.
    const char* const kNames[] = {"forward", "input", "weights"};
    for (size_t i = 0; i < 3; ++i) {
      const Product& one = products.each()[3 + i];
      TACIT_ASSIGN(const double time, SecondsAsGraph(stream, sizes.seconds / 3,
                                                     [&](Stream& on) { return one.Put(on); }));
      rows->push_back({fmt::format("gpu-product-{}-{}-{}", kNames[i], batch, by.name()),
                       rate(one, time),
                       "TFLOP/s",
                       {}});
    }
    TACIT_RETURN_IF_ERROR(AddEnds(sizes, stream, layers[1], batch, by, rows));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<StepProducts>> StepProducts::Make(Stream& stream,
                                                         const std::vector<ProductLayer>& layers,
                                                         uint32_t rows) {
  auto products = std::make_unique<Products>();
  TACIT_RETURN_IF_ERROR(
      products->Take(stream, layers, rows, {.way = OwnWay(stream.device().facts())}));
  return std::unique_ptr<StepProducts>(std::move(products));
}

Result<std::vector<bench::BenchRow>> BenchProducts(const GpuSizes& sizes) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  std::vector<bench::BenchRow> rows;
  TACIT_ASSIGN(const double copy, CopyRate(stream, sizes.seconds, sizes.copy_bytes));
  rows.push_back({"gpu-copy",
                  copy / 1e9,
                  "GB/s",
                  {},
                  {{"device", device->facts().name}},
                  device->facts().name});
  TACIT_ASSIGN(const auto layers, ClickLayers(sizes));
  std::vector<Multiplier> all = {{}};
  // Tiles that a plan does not take show whether it should.
  if (OwnWay(device->facts()) == GemmWay::kWgmma)
    for (const uint32_t tile : {0u, 64u, 256u})
      all.push_back({.way = GemmWay::kWgmma, .tile = tile});
  // cuBLAS is measured beside ours where it is installed.
  const auto library = Blas::Load(stream);
  if (library) {
    TACIT_RETURN_IF_ERROR(CheckLibrary(**library));
    all.push_back({.library = library->get()});
  }
  TACIT_RETURN_IF_ERROR(device->Health());
  for (const Multiplier& by : all) TACIT_RETURN_IF_ERROR(AddWay(sizes, stream, layers, by, &rows));
  return rows;
}

}  // namespace tacit::cuda
