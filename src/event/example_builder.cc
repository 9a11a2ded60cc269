#include "event/example_builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacit::event {

FeatureNames::FeatureNames(const FeatureSchema& schema) : dense_(schema.dense.size()) {
  for (const DenseFeature& feature : schema.dense) names_.push_back(feature.name);
  for (const CategoricalFeature& feature : schema.categorical) names_.push_back(feature.name);
  for (size_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], static_cast<uint32_t>(i));
}

std::optional<FeatureNames::Place> FeatureNames::Find(std::string_view name, size_t* guess) const {
  size_t index = *guess;
  if (index >= names_.size() || names_[index] != name) {
    const auto found = index_.find(name);
    if (found == index_.end()) return std::nullopt;
    index = found->second;
  }
  *guess = index + 1;
  return PlaceOf(index);
}

ExampleBuilder::ExampleBuilder(const FeatureTransform& transform, const FeatureNames& names,
                               MissingPolicy missing)
    : transform_(transform),
      names_(names),
      missing_(missing),
      told_(names.size()),
      dense_(transform.schema().dense.size()),
      runs_(transform.schema().categorical.size()) {}

void ExampleBuilder::Start() {
  guess_ = 0;
  std::ranges::fill(told_, uint8_t{0});
  std::ranges::fill(dense_, kMissingNumber);
  std::ranges::fill(runs_, Run{});
  rows_.clear();
}

void ExampleBuilder::SetValues(uint32_t index, std::span<const std::string_view> values) {
  const auto begin = static_cast<uint32_t>(rows_.size());
  if (transform_.schema().categorical[index].multi_hot) {
    transform_.AppendRows(index, values, &rows_);
  } else {
    rows_.push_back(transform_.Row(index, values.empty() ? std::string_view() : values[0]));
  }
  runs_[index] = {.begin = begin, .size = static_cast<uint32_t>(rows_.size()) - begin};
}

bool ExampleBuilder::SetBucket(uint32_t index, uint64_t bucket) {
  const RowSpace::Table& table = transform_.row_space().tables()[index];
  if (bucket >= table.rows) return false;
  runs_[index] = {.begin = static_cast<uint32_t>(rows_.size()), .size = 1};
  rows_.push_back(table.first + bucket);
  return true;
}

MaybeBad ExampleBuilder::AppendTo(Batch* batch) const {
  if (missing_ == MissingPolicy::kReject) {
    const auto absent = std::ranges::find(told_, uint8_t{0});
    if (absent != told_.end())
      return fmt::format("feature '{}' is missing",
                         names_.name(static_cast<size_t>(absent - told_.begin())));
  }
  batch->dense.insert(batch->dense.end(), dense_.begin(), dense_.end());
  // Room for the most that there can be; a missing feature has a row too.
  const size_t begin = batch->row.size(), ends = batch->slot_end.size();
  batch->row.resize(begin + rows_.size() + runs_.size());
  batch->slot_end.resize(ends + runs_.size());
  uint64_t* const row = batch->row.data();
  uint32_t* const slot_end = batch->slot_end.data() + ends;
  size_t end = begin;
  for (size_t slot = 0; slot < runs_.size(); ++slot) {
    const Run run = runs_[slot];
    if (run.size == 0) row[end++] = transform_.row_space().tables()[slot].first;
    for (uint32_t i = 0; i < run.size; ++i) row[end++] = rows_[run.begin + i];
    slot_end[slot] = static_cast<uint32_t>(end);
  }
  batch->row.resize(end);
  return std::nullopt;
}

}  // namespace tacit::event
