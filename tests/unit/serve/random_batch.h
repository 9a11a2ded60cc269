#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "event/feature_transform.h"

namespace tacit::serve {

// Ends the batch's newest example, whose numbers are there: slot s has the values texts_of(s).
template <class TextsOf>
void AppendSlots(const event::FeatureTransform& transform, const TextsOf& texts_of,
                 event::Batch* batch) {
  for (size_t s = 0; s < batch->slots; ++s) {
    const std::vector<std::string> texts = texts_of(s);
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    transform.AppendRows(s, views, &batch->row);
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  }
  batch->offset.push_back(batch->label.size());
  batch->timestamp_ms.push_back(0);
  batch->label.push_back(0);
}

// Examples of random numbers and of up to `values` different values a category; a set has up to
// three of them, or none.
inline event::Batch RandomBatch(const event::FeatureTransform& transform, size_t size,
                                uint64_t seed, uint64_t values = 40) {
  std::mt19937_64 random(seed);
  event::Batch batch;
  transform.StartBatch(&batch);
  for (size_t i = 0; i < size; ++i) {
    for (size_t d = 0; d < batch.dense_width; ++d)
      batch.dense.push_back(static_cast<float>(random() % 1000) / 250 - 2);
    AppendSlots(
        transform,
        [&](size_t s) {
          std::vector<std::string> texts(transform.schema().categorical[s].multi_hot ? random() % 4
                                                                                     : 1);
          for (auto& text : texts) text = std::to_string(random() % values);
          return texts;
        },
        &batch);
  }
  return batch;
}

}  // namespace tacit::serve
