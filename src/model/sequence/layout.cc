#include "model/sequence/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/check.h"

namespace tacit::model {
namespace {

constexpr uint32_t kLayoutVersion = 1;

}  // namespace

SequenceLayout::SequenceLayout(const SequenceOptions& options) : options_(options) {
  const Status status = CheckOptions(options);
  TACIT_CHECK(status.has_value(), "options are checked before a model is made");
  if (options_.feed_forward == 0) options_.feed_forward = options_.width;
  const size_t width = options_.width;
  embedding_scale_ = options_.embedding_scale > 0 ? options_.embedding_scale
                                                  : std::sqrt(static_cast<float>(width));
  items_ = AppendTable("items", options_.catalogue, width);
  if (!options_.tied) output_ = AppendTable("output", options_.catalogue, width);
  if (options_.item_bias) item_bias_ = AppendTable("item_bias", 1, options_.catalogue);
  if (options_.encoder == SequenceOptions::Encoder::kTransformer) {
    positions_ = AppendTable("positions", options_.length, width);
    for (uint32_t b = 0; b < options_.blocks; ++b) {
      const std::string block = fmt::format("block{}.", b);
      Block made;
      made.qkv = AppendLinear(block + "qkv", width, 3 * width);
      made.projection = AppendLinear(block + "projection", width, width);
      made.first = AppendNorm(block + "first_norm");
      made.inner = AppendLinear(block + "inner", width, options_.feed_forward);
      made.outer = AppendLinear(block + "outer", options_.feed_forward, width);
      made.second = AppendNorm(block + "second_norm");
      blocks_.push_back(made);
    }
    if (options_.norm == SequenceOptions::Norm::kPre) last_norm_ = AppendNorm("last_norm");
    return;
  }
  const size_t gates = options_.encoder == SequenceOptions::Encoder::kGru ? 3 : 4;
  for (uint32_t b = 0; b < options_.blocks; ++b) {
    const std::string layer = fmt::format("layer{}.", b);
    Recurrent made;
    made.input = AppendLinear(layer + "input", width, gates * width);
    made.recurrent = AppendLinear(layer + "recurrent", width, gates * width);
    recurrent_.push_back(made);
  }
}

size_t SequenceLayout::Append(std::string name, size_t rows, size_t cols) {
  groups_.push_back({std::move(name), size_, rows * cols, rows});
  size_ += rows * cols;
  return size_ - rows * cols;
}

ParameterTable SequenceLayout::AppendTable(std::string name, size_t rows, size_t cols) {
  ParameterTable table{rows, cols, Append(std::move(name), rows, cols), 0};
  table.group = groups_.size() - 1;
  return table;
}

LinearLayer SequenceLayout::AppendLinear(std::string name, size_t in, size_t out) {
  LinearLayer layer{in, out, size_};
  Append(std::move(name), layer.in + 1, layer.out);
  return layer;
}

NormLayer SequenceLayout::AppendNorm(std::string name) {
  return {options_.width, Append(std::move(name), 2, options_.width)};
}

const ParameterGroup* SequenceLayout::Find(std::string_view name) const {
  const auto found = std::ranges::find(groups_, name, &ParameterGroup::name);
  return found == groups_.end() ? nullptr : &*found;
}

std::vector<SumMap::Weights> SequenceLayout::Matrices() const {
  std::vector<SumMap::Weights> matrices;
  const auto add = [&](const LinearLayer& layer) {
    matrices.push_back({layer.in, layer.out, layer.offset});
  };
  for (const Block& block : blocks_)
    for (const LinearLayer* layer : {&block.qkv, &block.projection, &block.inner, &block.outer})
      add(*layer);
  for (const Recurrent& layer : recurrent_) {
    add(layer.input);
    add(layer.recurrent);
  }
  return matrices;
}

// A layer's row is named by its offset, so that layers draw different rows.
void SequenceLayout::FillLinear(const LinearLayer& layer, size_t parts, uint64_t seed,
                                std::span<float> parameters) const {
  const size_t fan = layer.in + layer.out / parts;
  for (size_t i = 0; i < layer.in; ++i) {
    const size_t at = layer.offset + i * layer.out;
    InitialRow(seed, at, std::sqrt(6 / static_cast<float>(fan)), parameters.subspan(at, layer.out));
  }
}

std::vector<float> SequenceLayout::Initial(uint64_t seed) const {
  std::vector<float> parameters(size_, 0.0f);
  for (const ParameterTable* table : {&items_, &output_, &positions_})
    for (size_t r = 0; r < table->rows; ++r) {
      const size_t at = table->offset + r * table->cols;
      InitialRow(seed, at, kInitialItemScale, std::span(parameters).subspan(at, table->cols));
    }
  const auto ones = [&](const NormLayer& norm) {
    std::ranges::fill(norm.Gain(std::span(parameters)), 1.0f);
  };
  for (const Block& block : blocks_) {
    FillLinear(block.qkv, 3, seed, parameters);
    for (const LinearLayer* layer : {&block.projection, &block.inner, &block.outer})
      FillLinear(*layer, 1, seed, parameters);
    ones(block.first);
    ones(block.second);
  }
  if (last_norm_.width > 0) ones(last_norm_);
  for (const Recurrent& layer : recurrent_) {
    const size_t gates = layer.input.out / layer.input.in;
    FillLinear(layer.input, gates, seed, parameters);
    FillLinear(layer.recurrent, gates, seed, parameters);
  }
  return parameters;
}

// The SHA-256 of, in the notation of base/bytes.h:
//     model   := "tacit.sequence":string version:u32 encoder:u8 norm:u8 catalogue:u32 length:u32
//                width:u32 blocks:u32 heads:u32 feed_forward:u32 tied:u8 item_bias:u8
//                embedding_scale:f32
//     version := 1
//     encoder := 0 transformer, 1 GRU, 2 LSTM
//     norm    := 0 post, 1 pre
Digest SequenceLayout::Fingerprint() const {
  ByteWriter bytes;
  bytes.PutString("tacit.sequence").Put(kLayoutVersion);
  bytes.Put(static_cast<uint8_t>(options_.encoder)).Put(static_cast<uint8_t>(options_.norm));
  bytes.Put(options_.catalogue).Put(options_.length).Put(options_.width).Put(options_.blocks);
  bytes.Put(options_.heads).Put(options_.feed_forward);
  bytes.Put(static_cast<uint8_t>(options_.tied)).Put(static_cast<uint8_t>(options_.item_bias));
  bytes.Put(embedding_scale_);
  return Sha256().Update(bytes.bytes()).Finish();
}

}  // namespace tacit::model
