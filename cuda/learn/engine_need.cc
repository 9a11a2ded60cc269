#include "cuda/learn/engine_need.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/noise/noise_check.h"
#include "cuda/learn/device_net.h"
#include "cuda/learn/device_optimizer.h"
#include "cuda/learn/engine_rows.h"
#include "cuda/learn/step_memory.h"
#include "cuda/learn/step_rows_index.h"
#include "cuda/learn/step_staging.h"
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

train::GpuStepLayout PlannedStep(const DeviceClickOptions& options) {
  return train::LayOutGpuStep(options.click.planned, options.chunk_examples,
                              options.round_examples);
}

// In the order in which MakeDeviceClickEngine takes it: rows have what all else leaves.
Result<train::GpuNeed> NeedOfClickEngine(const DeviceFacts& facts,
                                         const DeviceClickOptions& options, bool writes_every_row,
                                         uint64_t free) {
  const model::PctrOptions& model = options.click.model;
  const std::vector<model::LinearLayer> layers = LayersOf(model);
  const auto groups = static_cast<uint32_t>(layers.size() + 1);
  const size_t dense = layers.back().offset + layers.back().size();
  const DeviceNetBytes net = BytesOfDeviceNet(facts, {.precision = model.precision,
                                                      .layers = layers,
                                                      .rows_max = options.chunk_examples,
                                                      .products = options.products});
  uint64_t embedding_width = 0;
  for (const RowSpace::Table& table : model.space.tables()) embedding_width += table.dim;
  MemoryNeed need(facts.memory_piece_bytes);
  DeviceOptimizer::Plan(options.click.optimizer, dense, &need);
  // The gradient of embeddings; the dense sum; clipped units; shares of the clip.
  need.Add<NoiseKey>(1)
      .Add<float>(options.chunk_examples * embedding_width)
      .Add<int64_t>(dense)
      .Add<uint32_t>(1)
      .Add<double>(groups);
  const train::GpuStepLayout step = PlannedStep(options);
  StepStaging::Plan(step.words, &need);
  TACIT_RETURN_IF_ERROR(StepMemory().TakePlanned(step, groups, std::max(1u, model.space.max_dim()),
                                                 !writes_every_row, BufferTaker(need)));
  TACIT_RETURN_IF_ERROR(StepRowsIndex::Plan(step, &need));
  const uint64_t rest = net.kept + need.bytes();
  TACIT_ASSIGN(const RowsPlan rows,
               PlanRows(facts, model.space, StateFloatsOf(options.click), writes_every_row, step,
                        options.rows, free > rest ? free - rest : 0));
  // Memory that is taken at first and given back counts where all else is little.
  const uint64_t first = std::max(net.making, NoiseCheckBytesMost(facts.memory_piece_bytes));
  const uint64_t all = rest + rows.takes;
  return train::GpuNeed{
      .rows = rows.takes, .rest = std::max(all, first) - rows.takes, .caches = rows.caches};
}

train::GpuNeed NeedOfSequenceEngine(const DeviceFacts& facts,
                                    const DeviceSequenceOptions& options) {
  const model::SequenceLayout layout(options.sequence.model);
  MemoryNeed need(facts.memory_piece_bytes);
  need.Add<NoiseKey>(1).Add<int64_t>(layout.size());
  DeviceOptimizer::Plan(options.sequence.optimizer, layout.size(), &need);
  TACIT_CHECK(PlanSequenceSteps(options, layout, &need).has_value(), "adding up does not fail");
  return {.rest = std::max(need.bytes(), NoiseCheckBytesMost(facts.memory_piece_bytes))};
}

}  // namespace tacit::cuda
