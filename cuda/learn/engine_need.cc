#include "cuda/learn/engine_need.h"

#include <algorithm>

#include "cuda/kernels/noise.h"
#include "cuda/kernels/noise_check.h"
#include "cuda/learn/device_net.h"
#include "cuda/learn/device_optimizer.h"
#include "cuda/learn/engine_rows.h"
#include "model/sequence/layout.h"

namespace tacit::cuda {

std::vector<model::LinearLayer> LayersOf(const model::PctrOptions& options) {
  size_t in = options.dense_width, offset = 0;
  for (const RowSpace::Table& table : options.space.tables()) in += table.dim;
  std::vector<uint32_t> widths = options.hidden;
  widths.push_back(1);
  std::vector<model::LinearLayer> layers;
  for (const uint32_t out : widths) {
    layers.push_back({in, out, offset});
    offset += layers.back().size();
    in = out;
  }
  return layers;
}

std::vector<uint32_t> StateFloatsOf(const train::ClickEngineOptions& options) {
  const train::Optimizer optimizer(options.optimizer);
  std::vector<uint32_t> state_floats;
  for (const RowSpace::Table& table : options.model.space.tables())
    state_floats.push_back(static_cast<uint32_t>(optimizer.RowStateFloats(table.dim)));
  return state_floats;
}

// In the order in which MakeDeviceClickEngine takes it: rows have what the network leaves.
Result<train::GpuNeed> NeedOfClickEngine(const DeviceFacts& facts,
                                         const DeviceClickOptions& options, bool writes_every_row,
                                         uint64_t free) {
  const model::PctrOptions& model = options.click.model;
  const std::vector<model::LinearLayer> layers = LayersOf(model);
  const size_t dense = layers.back().offset + layers.back().size();
  const DeviceNetBytes net =
      BytesOfDeviceNet(facts, model.precision, layers, options.chunk_examples, options.products);
  const uint64_t before = net.kept + DeviceOptimizer::Bytes(options.click.optimizer, dense);
  TACIT_ASSIGN(const RowsPlan rows,
               PlanRows(model.space, StateFloatsOf(options.click), writes_every_row, options.rows,
                        free > before ? free - before : 0));
  uint64_t embedding_width = 0;
  for (const RowSpace::Table& table : model.space.tables()) embedding_width += table.dim;
  // Three counts of rows, one of clipped units; the gradient of embeddings; the dense sum; shares
  // of the clip.
  const uint64_t after = sizeof(NoiseKey) + 4 * sizeof(uint32_t) +
                         options.chunk_examples * embedding_width * sizeof(float) +
                         dense * sizeof(float) + (layers.size() + 1) * sizeof(double);
  const uint64_t all = before + rows.takes + after;
  return train::GpuNeed{.rows = rows.takes,
                        .rest = std::max({all, net.making, kNoiseCheckBytesMost}) - rows.takes,
                        .caches = rows.caches};
}

train::GpuNeed NeedOfSequenceEngine(const DeviceSequenceOptions& options) {
  const size_t dense = model::SequenceLayout(options.sequence.model).size();
  const uint64_t all = sizeof(NoiseKey) + dense * sizeof(int64_t) +
                       DeviceOptimizer::Bytes(options.sequence.optimizer, dense);
  return {.rest = std::max(all, kNoiseCheckBytesMost)};
}

}  // namespace tacit::cuda
