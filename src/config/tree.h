#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// A YAML document as plain values that remember where they were written. Only this room uses
// yaml-cpp.
namespace tacit::config {

struct Tree {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  // The place where it was written, for messages: "FILE:LINE" (of the key, inside a map), "override
  // 'a.b=value'" or "environment TACIT_A_B".
  std::string origin = {};
  std::string key = {};             // its name, if it is in a map
  std::string text = {};            // kScalar
  bool quoted = false;              // kScalar: in quotes, so never a number, a flag or null
  std::vector<Tree> children = {};  // kList, kMap; keys of a map are distinct

  // Returns the child with this name, or null.
  const Tree* Find(std::string_view name) const;
};

// Reads one document. Refuses duplicate keys, anchors and aliases, tags and further documents: a
// configuration needs none of them, and each can hide what it says.
Result<Tree> ParseYaml(std::string_view yaml, const std::string& name);

// Writes `value` at a dotted path ("learners.0.model.compute") and creates sections on the way;
// list items must exist. After "kafka." the rest of the path is one key. A value that is a YAML
// list, map or quoted text is read as such; anything else is a plain scalar. `origin` names the
// override in messages.
Status SetPath(Tree* root, std::string_view path, std::string_view value,
               const std::string& origin);

// A spot in a tree, for messages: "demo.yaml:41: learners[0].privacy.delta: must be ...".
class Place {
 public:
  explicit Place(const Tree& root) : tree_(&root), origin_(root.origin) {}

  // Returns the place below this one; a place that was not written has the origin of the one around
  // it.
  Place Key(std::string_view key) const;
  Place Item(size_t index) const;

  const Tree* tree() const { return tree_; }  // null if not written
  const std::string& path() const { return path_; }

  // "demo.yaml:41: learners[0].privacy.delta".
  std::string Name() const;
  // An error at this spot.
  tl::unexpected<Error> Fail(std::string_view message) const;

 private:
  const Tree* tree_;
  std::string origin_;
  std::string path_;
};

}  // namespace tacit::config
