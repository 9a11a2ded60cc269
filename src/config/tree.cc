#include "config/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tacit::config {
namespace {

constexpr size_t kDepthMax = 32;
// The section whose keys contain dots.
constexpr std::string_view kVerbatim = "kafka.";

// Parses a list index; returns false if `text` is none.
bool ParseIndex(std::string_view text, size_t* index) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *index);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns the child that one path component names; creates it if a section lacks it.
Result<Tree*> Step(Tree* at, std::string_view component, std::string_view walked,
                   const std::string& origin) {
  if (component.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: not a path of keys with a dot between them", origin));
  }
  if (at->kind == Tree::Kind::kList) {
    size_t index = 0;
    if (!ParseIndex(component, &index)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} is a list: its items are named by number, not '{}'", origin,
                              walked, component));
    }
    if (index >= at->children.size()) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: {} has {} item{}, there is no {}.{}", origin, walked,
                      at->children.size(), at->children.size() == 1 ? "" : "s", walked, index));
    }
    return &at->children[index];
  }
  if (at->kind == Tree::Kind::kScalar) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} is a value and has nothing below it", origin, walked));
  }
  at->kind = Tree::Kind::kMap;
  const auto found = std::ranges::find(at->children, component, &Tree::key);
  if (found != at->children.end()) return &*found;
  at->children.push_back({.origin = origin, .key = std::string(component)});
  return &at->children.back();
}

void SetOrigin(Tree* tree, const std::string& origin) {
  tree->origin = origin;
  for (Tree& child : tree->children) SetOrigin(&child, origin);
}

Tree ParseValue(std::string_view value, const std::string& origin) {
  if (!value.empty() && std::string_view("[{\"'").find(value.front()) != value.npos) {
    // A value that only looks like YAML, such as "[::1]:8980", is taken literally.
    if (Result<Tree> parsed = ParseYaml(value, origin)) {
      SetOrigin(&*parsed, origin);
      return std::move(*parsed);
    }
  }
  return {.kind = Tree::Kind::kScalar, .origin = origin, .text = std::string(value)};
}

}  // namespace

const Tree* Tree::Find(std::string_view name) const {
  if (kind != Kind::kMap) return nullptr;
  const auto found = std::ranges::find(children, name, &Tree::key);
  return found == children.end() ? nullptr : &*found;
}

Status SetPath(Tree* root, std::string_view path, std::string_view value,
               const std::string& origin) {
  Tree* at = root;
  size_t begin = 0, depth = 0;
  while (true) {
    const bool verbatim = path.substr(0, begin) == kVerbatim;
    const size_t dot = verbatim ? path.size() : std::min(path.find('.', begin), path.size());
    TACIT_ASSIGN(at, Step(at, path.substr(begin, dot - begin),
                          path.substr(0, begin == 0 ? 0 : begin - 1), origin));
    if (dot == path.size()) break;
    begin = dot + 1;
    if (++depth > kDepthMax) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: no key is that deep", origin));
    }
  }
  std::string key = std::move(at->key);
  *at = ParseValue(value, origin);
  at->key = std::move(key);
  return {};
}

Place Place::Key(std::string_view key) const {
  Place place = *this;
  if (!place.path_.empty()) place.path_ += '.';
  place.path_ += key;
  place.tree_ = tree_ == nullptr ? nullptr : tree_->Find(key);
  if (place.tree_ != nullptr) place.origin_ = place.tree_->origin;
  return place;
}

Place Place::Item(size_t index) const {
  Place place = *this;
  place.path_ += fmt::format("[{}]", index);
  const bool written =
      tree_ != nullptr && tree_->kind == Tree::Kind::kList && index < tree_->children.size();
  place.tree_ = written ? &tree_->children[index] : nullptr;
  if (written) place.origin_ = place.tree_->origin;
  return place;
}

std::string Place::Name() const {
  return path_.empty() ? origin_ : fmt::format("{}: {}", origin_, path_);
}

tl::unexpected<Error> Place::Fail(std::string_view message) const {
  return tacit::Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", Name(), message));
}

}  // namespace tacit::config
