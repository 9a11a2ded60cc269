#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/sequence/layout.h"
#include "model/transitions/public_items.h"

namespace tacit::model {

// Embeddings that begin near each other where the public describes their items alike, so that
// gradients, most of which are noise, need not find out what everybody knows. An item's first
// embedding is the sum of a vector that is its own, drawn by Initial, and of one that follows from
// its description: a vector for each genre, one for its year, between vectors that are drawn for
// every eighth year, and half of one for each rare word of its title. Both have the length of a
// drawn row. What is drawn for a genre or a word depends on its name and the seed alone: an item
// that comes later begins as its like began.
class DescribedStart {
 public:
  // Begins as drawn: nothing is described.
  DescribedStart() = default;
  // `share` of the square of an embedding's length follows from the description. REQUIRES a share
  // within 0 and 1.
  DescribedStart(std::shared_ptr<const transitions::PublicItems> items, double share)
      : items_(std::move(items)), share_(share) {}

  // Mixes the descriptions of these items into their rows of the embeddings, and of the output's
  // where that has rows of its own; the rows have what was drawn for them. Items without a
  // description stay.
  void MixIn(const SequenceLayout& layout, uint64_t seed, std::span<const uint32_t> items,
             std::span<float> parameters) const;
  // The same for all.
  void MixIn(const SequenceLayout& layout, uint64_t seed, std::span<float> parameters) const;

 private:
  bool Describe(uint32_t item, uint64_t seed, std::span<float> out, std::vector<float>* row) const;

  std::shared_ptr<const transitions::PublicItems> items_;
  double share_ = 0;
};

}  // namespace tacit::model
