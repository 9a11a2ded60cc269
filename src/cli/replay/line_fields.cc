#include "cli/replay/line_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <vector>

#include "base/text.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;
constexpr std::string_view kNone = "none";

// Reads columns as event::MakeCriteoTsvCodec does: the label, numbers, everything else.
class TsvFields final : public LineFields {
 public:
  explicit TsvFields(std::optional<size_t> key_column) : key_column_(key_column) {}

  void Read(std::string_view line) override {
    key_.reset();
    if (!key_column_) return;
    for (size_t column = 0; column < *key_column_; ++column) {
      const size_t tab = line.find('\t');
      if (tab == std::string_view::npos) return;
      line.remove_prefix(tab + 1);
    }
    line = line.substr(0, line.find('\t'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) key_ = line;
  }
  std::optional<std::string_view> key() const override { return key_; }
  bool timed() const override { return false; }
  std::optional<int64_t> timestamp_ms() const override { return std::nullopt; }

 private:
  const std::optional<size_t> key_column_;
  std::optional<std::string_view> key_;
};

class JsonFields final : public LineFields {
 public:
  JsonFields(std::string key, bool in_features)
      : name_(std::move(key)), in_features_(in_features) {}

  void Read(std::string_view line) override {
    key_.reset();
    timestamp_ms_.reset();
    json::error_code error;
    const json::value value = json::parse({line.data(), line.size()}, error);
    const json::object* object = error ? nullptr : value.if_object();
    if (object == nullptr) return;
    const json::value* time = object->if_contains("timestamp_ms");
    if (time != nullptr && time->is_int64()) timestamp_ms_ = time->get_int64();
    if (in_features_) {
      const json::value* features = object->if_contains("features");
      object = features == nullptr ? nullptr : features->if_object();
    }
    if (object != nullptr) ReadKey(object->if_contains(name_));
  }
  std::optional<std::string_view> key() const override { return key_; }
  bool timed() const override { return true; }
  std::optional<int64_t> timestamp_ms() const override { return timestamp_ms_; }

 private:
  void ReadKey(const json::value* value) {
    if (value == nullptr) return;
    if (const auto* text = value->if_string())
      key_.emplace(text->data(), text->size());
    else if (value->is_int64() || value->is_uint64())
      key_ = json::serialize(*value);
  }

  const std::string name_;
  const bool in_features_;
  std::optional<std::string> key_;
  std::optional<int64_t> timestamp_ms_;
};

// Reads nothing from a line.
class NoFields final : public LineFields {
 public:
  void Read(std::string_view) override {}
  std::optional<std::string_view> key() const override { return std::nullopt; }
  bool timed() const override { return false; }
  std::optional<int64_t> timestamp_ms() const override { return std::nullopt; }
};

}  // namespace

Result<std::unique_ptr<LineFields>> MakeLineFields(const config::Config& config,
                                                   const std::string& key, bool timed) {
  if (key == kNone && !timed) return std::make_unique<NoFields>();
  using Kind = config::Feature::Kind;
  std::vector<std::string_view> names;
  for (const bool dense : {true, false})
    for (const config::Feature& feature : config.features)
      if ((feature.kind == Kind::kDense) == dense) names.push_back(feature.name);
  const auto found = std::ranges::find(names, key);
  if (config.source.format == config::Source::Format::kCriteoTsv) {
    std::optional<size_t> column;
    if (key != kNone) {
      if (found == names.end())
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("--key {}: the log has no such column{}", key, DidYouMean(key, names)));
      column = 1 + static_cast<size_t>(found - names.begin());
    }
    return std::make_unique<TsvFields>(column);
  }
  if (config.source.format == config::Source::Format::kCsv)
    return Fail(ErrorCode::kInvalidArgument,
                "lines of values are replayed as they come: --key none, and no --speed");
  constexpr std::string_view kOwn[] = {kNone, "user", "item", "event_id"};
  const bool own = std::ranges::find(kOwn, key) != std::end(kOwn);
  if (!own && found == names.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--key {}: is neither user, item, event_id, none nor a feature{}", key,
                            DidYouMean(key, names)));
  return std::make_unique<JsonFields>(key, !own);
}

}  // namespace tacit::cli
