#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "event/shape_rules.h"

namespace tacit::event {

// The places of a record's parts as a tree of keys.
struct PlaceNode {
  std::vector<std::pair<std::string, uint32_t>> children;  // ascending by key; indices of nodes
  std::vector<uint32_t> parts;                             // read here

  const uint32_t* Find(std::string_view key) const;
};

// Builds the tree; its first node is the record. Fails for what is no JSON pointer, and for a place
// inside of another one's value, which would have to be read from an object that is a value as
// well. `key` is that of the shape, for the message.
Result<std::vector<PlaceNode>> MakePlaceTree(std::string_view key,
                                             const std::vector<ShapePart>& parts);

}  // namespace tacit::event
