#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/dense_net.h"
#include "model/sequence/options.h"

namespace tacit::model {

// Adjacent numbers of the flat parameters that are one group to a clip: a matrix, row by row.
struct ParameterGroup {
  std::string name;
  size_t offset = 0;
  size_t size = 0;
  size_t rows = 1;
};

// A table of `rows` x `cols` in the flat parameters, with its group.
struct ParameterTable {
  size_t rows = 0, cols = 0, offset = 0;
  size_t group = 0;

  size_t size() const { return rows * cols; }
  ops::ConstMatrix Of(std::span<const float> parameters) const {
    return {parameters.data() + offset, rows, cols};
  }
  ops::Matrix Of(std::span<float> parameters) const {
    return {parameters.data() + offset, rows, cols};
  }
};

// Gain and bias of a normalised layer, one after the other.
struct NormLayer {
  size_t width = 0, offset = 0;

  std::span<const float> Gain(std::span<const float> p) const { return p.subspan(offset, width); }
  std::span<const float> Bias(std::span<const float> p) const {
    return p.subspan(offset + width, width);
  }
  std::span<float> Gain(std::span<float> p) const { return p.subspan(offset, width); }
};

// The layout of a sequence model's parameters in its one flat vector: item embeddings first, then
// the output layer if it has rows of its own, item biases, positions, the encoder. A value.
class SequenceLayout {
 public:
  explicit SequenceLayout(const SequenceOptions& options);

  struct Block {
    LinearLayer qkv;  // queries, keys and values side by side
    LinearLayer projection, inner, outer;
    NormLayer first, second;
  };
  // Gates side by side, each with a bias of the input's and one of the state's. GRU: reset, update,
  // candidate. LSTM: input, forget, candidate, output.
  struct Recurrent {
    LinearLayer input, recurrent;
  };

  const SequenceOptions& options() const { return options_; }
  size_t size() const { return size_; }
  std::span<const ParameterGroup> groups() const { return groups_; }
  // Returns the group of this name, or null.
  const ParameterGroup* Find(std::string_view name) const;

  const ParameterTable& items() const { return items_; }
  const ParameterTable& output() const { return options_.tied ? items_ : output_; }
  const ParameterTable& item_bias() const { return item_bias_; }  // 1 x catalogue, or empty
  const ParameterTable& positions() const { return positions_; }  // empty for recurrent encoders
  std::span<const Block> blocks() const { return blocks_; }
  std::span<const Recurrent> recurrent() const { return recurrent_; }
  // The encoder's weight matrices, in the order of their offsets: those that can have factors.
  std::vector<SumMap::Weights> Matrices() const;
  const NormLayer& last_norm() const { return last_norm_; }  // width 0: none
  float embedding_scale() const { return embedding_scale_; }

  static constexpr float kInitialItemScale = 0.05f;
  // Returns initial parameters, uniform: embeddings within kInitialItemScale, weights by Glorot and
  // Bengio (2010); gains 1, biases 0. A function of the seed.
  std::vector<float> Initial(uint64_t seed) const;
  // A digest of everything that makes stored parameters this model's. layout.cc has the byte
  // grammar.
  Digest Fingerprint() const;

 private:
  size_t Append(std::string name, size_t rows, size_t cols);
  ParameterTable AppendTable(std::string name, size_t rows, size_t cols);
  LinearLayer AppendLinear(std::string name, size_t in, size_t out);
  NormLayer AppendNorm(std::string name);
  void FillLinear(const LinearLayer& layer, size_t parts, uint64_t seed,
                  std::span<float> parameters) const;

  SequenceOptions options_;
  size_t size_ = 0;
  float embedding_scale_ = 1;
  std::vector<ParameterGroup> groups_;
  ParameterTable items_, output_, item_bias_, positions_;
  std::vector<Block> blocks_;
  std::vector<Recurrent> recurrent_;
  NormLayer last_norm_;
};

}  // namespace tacit::model
