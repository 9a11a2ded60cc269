#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "config/config.h"
#include "config/tree.h"

namespace tacit::config {
namespace {

// A library that is given a longer text may refuse it when it is too late to say so: libcurl takes
// no url of 8 MB.
constexpr size_t kTextBytesMost = 64 << 10;

// An exception that leaves the parser, which cannot be stopped otherwise; ParseYaml catches it.
struct Refusal {
  Error error;
};

// Builds a Tree from the parser's events. Events keep duplicate keys and lines, which a YAML::Node
// loses or blurs.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string name, Tree* root) : name_(std::move(name)), root_(root) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, "", Tree::Kind::kNull);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { RefuseAnchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (value.size() > kTextBytesMost)
      Refuse(mark, fmt::format("a text of {} bytes, where {} are the most", value.size(),
                               kTextBytesMost));
    if (ExpectsKey()) {
      StartKey(mark, value);
      return;
    }
    const bool quoted = tag == "!";
    const bool null = !quoted && (value.empty() || value == "~" || value == "null");
    Tree* scalar = Add(mark, anchor, tag, null ? Tree::Kind::kNull : Tree::Kind::kScalar);
    scalar->text = value;
    scalar->quoted = quoted;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back(Add(mark, anchor, tag, Tree::Kind::kList));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back(Add(mark, anchor, tag, Tree::Kind::kMap));
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  std::string At(const YAML::Mark& mark) const {
    return fmt::format("{}:{}", name_, mark.line + 1);
  }
  [[noreturn]] void Refuse(const YAML::Mark& mark, std::string_view message) const {
    throw Refusal{{ErrorCode::kInvalidArgument, fmt::format("{}: {}", At(mark), message)}};
  }
  [[noreturn]] void RefuseAnchor(const YAML::Mark& mark) const {
    Refuse(mark, "anchors and aliases are not read; write the value out");
  }

  // Returns true if the next event is the key of a map's next entry.
  bool ExpectsKey() const {
    return !open_.empty() && open_.back()->kind == Tree::Kind::kMap && !has_key_;
  }
  void StartKey(const YAML::Mark& mark, const std::string& key) {
    if (const Tree* first = open_.back()->Find(key)) {
      Refuse(mark, fmt::format("{}: written twice, first at {}", key, first->origin));
    }
    open_.back()->children.push_back({.origin = At(mark), .key = key});
    has_key_ = true;
  }
  // Returns the tree node for the value that begins here.
  Tree* Add(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag,
            Tree::Kind kind) {
    if (anchor != YAML::NullAnchor) RefuseAnchor(mark);
    if (ExpectsKey()) Refuse(mark, "a key must be plain text");
    Tree* value = root_;
    if (!open_.empty()) {
      if (open_.back()->kind == Tree::Kind::kList) open_.back()->children.push_back({});
      value = &open_.back()->children.back();
    }
    // A password that begins with an exclamation mark looks like a tag, so the message omits a
    // secret.
    if (!tag.empty() && tag != "?" && tag != "!")
      Refuse(mark, "tags are not read" + (IsSecret(value->key) ? "" : ": " + tag));
    if (value->origin.empty()) value->origin = At(mark);
    value->kind = kind;
    has_key_ = false;
    return value;
  }

  std::string name_;
  Tree* root_;
  // The lists and maps around the current event. A pointer stays valid while its element is open:
  // its parent gets no new child before it is closed.
  std::vector<Tree*> open_;
  bool has_key_ = false;
};

}  // namespace

Result<Tree> ParseYaml(std::string_view yaml, const std::string& name) {
  Tree root;
  try {
    std::istringstream in{std::string(yaml)};
    YAML::Parser parser(in);
    TreeBuilder builder(name, &root);
    parser.HandleNextDocument(builder);
    Tree second;
    TreeBuilder rest(name, &second);
    if (parser.HandleNextDocument(rest)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: holds more than one document", name));
    }
  } catch (const Refusal& refusal) {
    return Fail(refusal.error);
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}:{}: not YAML: {}", name, error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not YAML: {}", name, error.what()));
  }
  if (root.origin.empty()) root.origin = name + ":1";
  return root;
}

}  // namespace tacit::config
