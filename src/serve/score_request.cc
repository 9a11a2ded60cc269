#include "serve/score_request.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "serve/request_json.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

// A finite number, nothing for null.
Result<std::optional<double>> Number(const json::value& value, std::string_view name) {
  if (value.is_null()) return std::optional<double>();
  json::error_code not_number;
  const double number = value.to_number<double>(not_number);
  if (not_number) return BadRequest(fmt::format("{} must be a number or null", name));
  if (!std::isfinite(number)) return BadRequest(fmt::format("{} is out of range", name));
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
  if (object == nullptr) return BadRequest("must be an object");
  Values dense(transform_.schema().dense.size());
  Values categorical(transform_.schema().categorical.size());
  if (const json::value* const features = object->if_contains("features")) {
    if (object->size() != 1) return BadRequest("\"features\" stands alone in its row");
    if (!features->is_object()) return BadRequest("\"features\" must be an object");
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
    if (!is_dense && key != "categorical") return BadRequest(UnknownName("key", View(key), kKeys));
    Values* const values = is_dense ? dense : categorical;
    const json::array* const array = value.if_array();
    if (array == nullptr) return BadRequest(fmt::format("\"{}\" must be an array", View(key)));
    if (array->size() != values->size())
      return BadRequest(fmt::format("\"{}\" has {} values, the schema {}", View(key), array->size(),
                                    values->size()));
    for (size_t i = 0; i < array->size(); ++i) (*values)[i] = &(*array)[i];
  }
  return {};
}

Status RowReader::ReadFeatures(const json::object& features, Values* dense,
                               Values* categorical) const {
  for (const auto& [key, value] : features) {
    const auto at = columns_.find(View(key));
    if (at == columns_.end()) return BadRequest(UnknownName("feature", View(key), names_));
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
    if (!schema.multi_hot)
      return BadRequest(fmt::format("{} takes one string, not a list", schema.name));
    for (const json::value& element : value->get_array()) {
      if (!element.is_string())
        return BadRequest(fmt::format("{} must hold strings only", schema.name));
      several.push_back(View(element.get_string()));
    }
    values = several;
  } else if (value != nullptr && value->is_string()) {
    one = View(value->get_string());
  } else if (value != nullptr && !value->is_null()) {
    return BadRequest(fmt::format("{} must be a string or null", schema.name));
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
  std::vector<std::string_view> learners;  // names of the targets

  Result<size_t> Read(const json::object& request, event::Batch* batch) const;
};

ScoreRequestParser::ScoreRequestParser(std::vector<Target> targets, Limits limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->targets = std::move(targets);
  impl_->limits = limits;
  for (const Target& target : impl_->targets) {
    impl_->readers.emplace_back(*target.transform);
    impl_->learners.push_back(target.learner);
  }
}
ScoreRequestParser::~ScoreRequestParser() = default;

Result<size_t> ScoreRequestParser::Impl::Read(const json::object& request,
                                              event::Batch* batch) const {
  static constexpr std::string_view kKeys[] = {"learner", "rows"};
  TACIT_RETURN_IF_ERROR(CheckKeys(request, kKeys));
  TACIT_ASSIGN(const size_t target, FindLearner(request, learners));
  const json::value* const rows = request.if_contains("rows");
  if (rows == nullptr) return BadRequest("\"rows\" is missing");
  if (!rows->is_array()) return BadRequest("\"rows\" must be an array");
  const json::array& array = rows->get_array();
  if (array.size() > limits.max_rows)
    return BadRequest(
        fmt::format("{} rows, at most {} in one request", array.size(), limits.max_rows));
  targets[target].transform->StartBatch(batch);
  for (size_t i = 0; i < array.size(); ++i) {
    const Status read = readers[target].Read(array[i], batch);
    if (!read) return Fail(Error(read.error()).Context(fmt::format("row {}", i)));
  }
  return target;
}

Result<size_t> ScoreRequestParser::Parse(std::string_view text, event::Batch* batch) {
  json::monotonic_resource memory;  // freed at once, whatever was parsed
  TACIT_ASSIGN(const json::object request, ParseBody(text, impl_->limits.max_depth, &memory));
  return impl_->Read(request, batch);
}

}  // namespace tacit::serve
