#include "event/places/place_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_pointer.h"

namespace tacit::event {

const uint32_t* PlaceNode::Find(std::string_view key) const {
  const auto child = std::ranges::lower_bound(
      children, key, {}, [](const auto& c) { return std::string_view(c.first); });
  return child != children.end() && child->first == key ? &child->second : nullptr;
}

Result<std::vector<PlaceNode>> MakePlaceTree(std::string_view key,
                                             const std::vector<ShapePart>& parts) {
  struct Growing {
    std::map<std::string, uint32_t> children;
    std::vector<uint32_t> parts;
  };
  const auto wrong = [key](const ShapePart& part, std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}, {}: '{}' {}", key, part.name, part.where, what));
  };
  std::vector<Growing> nodes(1);
  for (uint32_t p = 0; p < parts.size(); ++p) {
    const auto keys = KeysOfPointer(parts[p].where);
    if (!keys) return wrong(parts[p], keys.error().message);
    uint32_t at = 0;
    for (const std::string& name : *keys) {
      const auto [child, fresh] =
          nodes[at].children.emplace(name, static_cast<uint32_t>(nodes.size()));
      at = child->second;
      if (fresh) nodes.emplace_back();
    }
    nodes[at].parts.push_back(p);
  }
  std::vector<PlaceNode> tree(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    tree[i].children.assign(nodes[i].children.begin(), nodes[i].children.end());
    tree[i].parts = nodes[i].parts;
    if (tree[i].parts.empty() || tree[i].children.empty()) continue;
    uint32_t below = tree[i].children[0].second;
    while (nodes[below].parts.empty()) below = nodes[below].children.begin()->second;
    const ShapePart& around = parts[tree[i].parts[0]];
    return wrong(parts[nodes[below].parts[0]],
                 fmt::format("lies inside of '{}', the value of {}", around.where, around.name));
  }
  return tree;
}

}  // namespace tacit::event
