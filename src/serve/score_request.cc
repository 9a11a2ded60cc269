#include "serve/score_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/text.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

constexpr size_t kEchoMax = 64;  // bytes of a name that are worth repeating

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known) {
  if (name.size() > kEchoMax) return fmt::format("unknown {}, {} bytes long", what, name.size());
  return fmt::format("unknown {} '{}'{}", what, name, DidYouMean(name, known));
}

// A finite number, nothing for null.
Result<std::optional<double>> Number(const json::value& value, std::string_view name) {
  if (value.is_null()) return std::optional<double>();
  json::error_code not_number;
  const double number = value.to_number<double>(not_number);
  if (not_number) return Bad(fmt::format("{} must be a number or null", name));
  if (!std::isfinite(number)) return Bad(fmt::format("{} is out of range", name));
  return std::optional<double>(number);
}

// Where a feature of a name is.
struct Column {
  bool is_dense = false;
  size_t index = 0;
};

// One learner's schema, prepared for requests. Immutable.
class RowReader {
 public:
  explicit RowReader(const event::FeatureTransform& transform);

  // Appends one example to `batch`.
  Status Read(const json::value& row, event::Batch* batch) const;

 private:
  using Values = std::vector<const json::value*>;  // one per feature; null: missing

  Status ReadColumns(const json::object& row, Values* dense, Values* categorical) const;
  Status ReadFeatures(const json::object& features, Values* dense, Values* categorical) const;
  Status Append(const Values& dense, const Values& categorical, event::Batch* batch) const;
  Status AppendSlot(size_t feature, const json::value* value, event::Batch* batch) const;

  const event::FeatureTransform& transform_;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, Column> columns_;
};

RowReader::RowReader(const event::FeatureTransform& transform) : transform_(transform) {
  const auto& schema = transform.schema();
  for (size_t i = 0; i < schema.dense.size(); ++i)
    columns_[names_.emplace_back(schema.dense[i].name)] = {true, i};
  for (size_t i = 0; i < schema.categorical.size(); ++i)
    columns_[names_.emplace_back(schema.categorical[i].name)] = {false, i};
}

Status RowReader::Read(const json::value& row, event::Batch* batch) const {
  const json::object* const object = row.if_object();
  if (object == nullptr) return Bad("must be an object");
  Values dense(transform_.schema().dense.size());
  Values categorical(transform_.schema().categorical.size());
  if (const json::value* const features = object->if_contains("features")) {
    if (object->size() != 1) return Bad("\"features\" stands alone in its row");
    if (!features->is_object()) return Bad("\"features\" must be an object");
    TACIT_RETURN_IF_ERROR(ReadFeatures(features->get_object(), &dense, &categorical));
  } else {
    TACIT_RETURN_IF_ERROR(ReadColumns(*object, &dense, &categorical));
  }
  return Append(dense, categorical, batch);
}

Status RowReader::ReadColumns(const json::object& row, Values* dense, Values* categorical) const {
  static constexpr std::string_view kKeys[] = {"dense", "categorical", "features"};
  for (const auto& [key, value] : row) {
    const bool is_dense = key == "dense";
    if (!is_dense && key != "categorical") return Bad(UnknownName("key", View(key), kKeys));
    Values* const values = is_dense ? dense : categorical;
    const json::array* const array = value.if_array();
    if (array == nullptr) return Bad(fmt::format("\"{}\" must be an array", View(key)));
    if (array->size() != values->size())
      return Bad(fmt::format("\"{}\" has {} values, the schema {}", View(key), array->size(),
                             values->size()));
    for (size_t i = 0; i < array->size(); ++i) (*values)[i] = &(*array)[i];
  }
  return {};
}

Status RowReader::ReadFeatures(const json::object& features, Values* dense,
                               Values* categorical) const {
  for (const auto& [key, value] : features) {
    const auto at = columns_.find(View(key));
    if (at == columns_.end()) return Bad(UnknownName("feature", View(key), names_));
    (*(at->second.is_dense ? dense : categorical))[at->second.index] = &value;
  }
  return {};
}

Status RowReader::Append(const Values& dense, const Values& categorical,
                         event::Batch* batch) const {
  for (size_t i = 0; i < dense.size(); ++i) {
    std::optional<double> number;
    const std::string& name = transform_.schema().dense[i].name;
    if (dense[i] != nullptr) {
      TACIT_ASSIGN(number, Number(*dense[i], name));
    }
    batch->dense.push_back(transform_.Dense(i, number));
  }
  for (size_t i = 0; i < categorical.size(); ++i)
    TACIT_RETURN_IF_ERROR(AppendSlot(i, categorical[i], batch));
  batch->offset.push_back(batch->label.size());
  batch->timestamp_ms.push_back(0);
  batch->label.push_back(0);
  return {};
}

Status RowReader::AppendSlot(size_t feature, const json::value* value, event::Batch* batch) const {
  const event::CategoricalFeature& schema = transform_.schema().categorical[feature];
  std::vector<std::string_view> several;
  std::string_view one;
  std::span<const std::string_view> values(&one, 1);  // an empty string is a missing value
  if (value != nullptr && value->is_array()) {
    if (!schema.multi_hot) return Bad(fmt::format("{} takes one string, not a list", schema.name));
    for (const json::value& element : value->get_array()) {
      if (!element.is_string()) return Bad(fmt::format("{} must hold strings only", schema.name));
      several.push_back(View(element.get_string()));
    }
    values = several;
  } else if (value != nullptr && value->is_string()) {
    one = View(value->get_string());
  } else if (value != nullptr && !value->is_null()) {
    return Bad(fmt::format("{} must be a string or null", schema.name));
  }
  transform_.AppendRows(feature, values, &batch->row);
  batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  return {};
}

}  // namespace

struct ScoreRequestParser::Impl {
  std::vector<Target> targets;
  Limits limits;
  std::vector<RowReader> readers;

  Result<size_t> FindLearner(const json::object& request) const;
  Result<size_t> Read(const json::value& document, event::Batch* batch) const;
};

ScoreRequestParser::ScoreRequestParser(std::vector<Target> targets, Limits limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->targets = std::move(targets);
  impl_->limits = limits;
  for (const Target& target : impl_->targets) impl_->readers.emplace_back(*target.transform);
}
ScoreRequestParser::~ScoreRequestParser() = default;

// The learner may be left out where there is only one.
Result<size_t> ScoreRequestParser::Impl::FindLearner(const json::object& request) const {
  const json::value* const learner = request.if_contains("learner");
  if (learner == nullptr && targets.size() == 1) return size_t{0};
  if (learner == nullptr) return Bad("\"learner\" is missing");
  if (!learner->is_string()) return Bad("\"learner\" must be a string");
  const std::string_view name = View(learner->get_string());
  std::vector<std::string_view> names;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].learner == name) return i;
    names.push_back(targets[i].learner);
  }
  return Fail(ErrorCode::kNotFound, UnknownName("learner", name, names));
}

Result<size_t> ScoreRequestParser::Impl::Read(const json::value& document,
                                              event::Batch* batch) const {
  static constexpr std::string_view kKeys[] = {"learner", "rows"};
  const json::object* const request = document.if_object();
  if (request == nullptr) return Bad("the request must be a JSON object");
  for (const auto& member : *request)
    if (std::find(std::begin(kKeys), std::end(kKeys), View(member.key())) == std::end(kKeys))
      return Bad(UnknownName("key", View(member.key()), kKeys));
  TACIT_ASSIGN(const size_t target, FindLearner(*request));
  const json::value* const rows = request->if_contains("rows");
  if (rows == nullptr) return Bad("\"rows\" is missing");
  if (!rows->is_array()) return Bad("\"rows\" must be an array");
  const json::array& array = rows->get_array();
  if (array.size() > limits.max_rows)
    return Bad(fmt::format("{} rows, at most {} in one request", array.size(), limits.max_rows));
  targets[target].transform->StartBatch(batch);
  for (size_t i = 0; i < array.size(); ++i) {
    const Status read = readers[target].Read(array[i], batch);
    if (!read) return Fail(Error(read.error()).Context(fmt::format("row {}", i)));
  }
  return target;
}

Result<size_t> ScoreRequestParser::Parse(std::string_view text, event::Batch* batch) {
  json::parse_options options;
  options.max_depth = impl_->limits.max_depth;
  json::monotonic_resource memory;  // freed at once, whatever was parsed
  json::parser parser(&memory, options);
  json::error_code error;
  const size_t parsed = parser.write({text.data(), text.size()}, error);
  if (error == json::error::incomplete)
    return Bad(fmt::format("not JSON: it ends too early, at byte {}", text.size()));
  if (error) return Bad(fmt::format("not JSON: {} at byte {}", error.message(), parsed));
  return impl_->Read(parser.release(), batch);
}

}  // namespace tacit::serve
