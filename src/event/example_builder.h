#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event/batch.h"
#include "event/codec.h"
#include "event/feature_transform.h"

namespace tacit::event {

// The schema's features by name, for formats with named features. Immutable; thread-safe.
class FeatureNames {
 public:
  struct Place {
    bool dense = false;
    uint32_t index = 0;  // among the dense, or the categorical features
  };

  explicit FeatureNames(const FeatureSchema& schema);

  // Finds a feature, first at index `*guess`, and sets `*guess` to the index after it: records tend
  // to name their features in the same order.
  std::optional<Place> Find(std::string_view name, size_t* guess) const;
  Place PlaceOf(size_t index) const {
    const bool dense = index < dense_;
    return {.dense = dense, .index = static_cast<uint32_t>(dense ? index : index - dense_)};
  }
  std::string_view NameOf(Place place) const { return names_[IndexOf(place)]; }
  std::string_view name(size_t index) const { return names_[index]; }
  size_t IndexOf(Place place) const { return place.dense ? place.index : dense_ + place.index; }
  size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;  // dense, then categorical
  size_t dense_ = 0;
  std::unordered_map<std::string_view, uint32_t> index_;  // views of names_
};

// Builds one example at a time from features in any order: turns values into rows as they come and
// appends the example to a batch in the schema's order. Keeps its memory.
class ExampleBuilder {
 public:
  // The references must outlive the builder.
  ExampleBuilder(const FeatureTransform& transform, const FeatureNames& names,
                 MissingPolicy missing);

  void Start();
  // Returns the place of the feature with this name, or nullopt if the schema lacks it; skip its
  // value then.
  std::optional<FeatureNames::Place> Find(std::string_view name) {
    return names_.Find(name, &guess_);
  }
  // The feature name expected next, or "" if there is none; Follow accepts it.
  std::string_view expected() const {
    return guess_ < names_.size() ? names_.name(guess_) : std::string_view();
  }
  FeatureNames::Place Follow() { return names_.PlaceOf(guess_++); }
  std::string_view NameOf(FeatureNames::Place place) const { return names_.NameOf(place); }
  bool IsSet(FeatureNames::Place place) const {
    return !place.dense && transform_.schema().categorical[place.index].multi_hot;
  }

  // Marks a feature as present; returns false if it was marked before.
  bool Tell(FeatureNames::Place place) {
    uint8_t& told = told_[names_.IndexOf(place)];
    return std::exchange(told, uint8_t{1}) == 0;
  }
  // REQUIRES a dense place that Tell has marked.
  void SetNumber(uint32_t index, double value) { dense_[index] = transform_.Dense(index, value); }
  // The same bits for an integer, sooner.
  void SetInteger(uint32_t index, int64_t value) {
    dense_[index] = transform_.DenseInteger(index, value);
  }
  // REQUIRES a categorical place; an empty set or value counts as missing.
  void SetValues(uint32_t index, std::span<const std::string_view> values);
  // The same by bucket number; returns false when the table has no such bucket.
  bool SetBucket(uint32_t index, uint64_t bucket);

  // Appends dense, slot_end and row; returns a reason if the policy forbids a missing feature.
  MaybeBad AppendTo(Batch* batch) const;

 private:
  struct Run {
    uint32_t begin = 0, size = 0;  // in rows_
  };

  const FeatureTransform& transform_;
  const FeatureNames& names_;
  const MissingPolicy missing_;
  size_t guess_ = 0;
  std::vector<uint8_t> told_;  // per feature, as FeatureNames counts them
  std::vector<float> dense_;
  std::vector<Run> runs_;  // per categorical feature
  std::vector<uint64_t> rows_;
};

}  // namespace tacit::event
