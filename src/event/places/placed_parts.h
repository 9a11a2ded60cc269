#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/codec.h"
#include "event/example_builder.h"
#include "event/places/place_tree.h"
#include "event/record_parts.h"
#include "event/record_shape.h"
#include "event/shape_rules.h"

namespace tacit::event {

// One value: what is written, and what it is as a number.
struct Scalar {
  enum class Kind : uint8_t { kNull, kText, kNumber, kFlag };
  Kind kind = Kind::kNull;
  std::string_view text = {};  // a number as it is written
  double number = 0;           // kNumber, kFlag
};

// The parts of a record that are read from places, for formats whose values have names: JSON and
// Avro. Immutable; thread-safe.
class PlacedParts {
 public:
  // The parts of the record that is being read. Keeps its memory.
  struct Scratch {
    ExampleBuilder example;
    std::vector<uint8_t> told;             // by part
    std::vector<std::string_view> values;  // of a set
    RecordParts own;                       // all but the features
  };

  // `transform` must outlive it. REQUIRES CheckShape.
  PlacedParts(const FeatureTransform& transform, JsonShape shape, InteractionOptions options);
  PlacedParts(const PlacedParts&) = delete;

  Scratch MakeScratch(const Batch& batch) const;
  const JsonShape& shape() const { return shape_; }
  const ShapePart& part(uint32_t part) const { return parts_[part]; }
  const std::vector<PlaceNode>& tree() const { return tree_; }

  // Begins a record.
  void Start(Scratch* scratch) const;
  // Marks the parts of a place as read. Returns a reason if they were before.
  MaybeBad Tell(const std::vector<uint32_t>& parts, Scratch* scratch) const;
  // Sets a part to a value. Texts of the user and the event must last until Append.
  MaybeBad Set(uint32_t part, const Scalar& scalar, Scratch* scratch) const;
  // Returns a reason if the parts cannot have a list.
  MaybeBad CheckList(const std::vector<uint32_t>& parts) const;
  // Sets parts to the values of a list, `scratch->values`. REQUIRES CheckList.
  void SetList(const std::vector<uint32_t>& parts, Scratch* scratch) const;
  bool IsMissingIn(uint32_t part, std::string_view text) const {
    return IsMissing(shape_, parts_[part], text);
  }
  // Appends the record's example, or returns a reason.
  MaybeBad Append(const RawRecords& records, size_t i, const Scratch& scratch, Batch* batch) const;
  MaybeBad Wrong(uint32_t part, std::string_view what) const;

 private:
  bool IsSet(uint32_t part) const;
  MaybeBad SetFeature(uint32_t part, const Scalar& scalar, Scratch* scratch) const;

  const FeatureTransform& transform_;
  const FeatureNames names_;
  const JsonShape shape_;
  const InteractionOptions options_;
  const std::vector<ShapePart> parts_;
  const std::vector<PlaceNode> tree_;
};

// Lists what is read from where, and checks it against the schema. `key` is that of the shape, for
// messages.
std::vector<ShapePart> PlacedPartsOf(const JsonShape& shape, const FeatureSchema& schema);

}  // namespace tacit::event
