#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/distinct_rows.h"
#include "base/result.h"
#include "event/batch.h"
#include "event/feature_transform.h"
#include "http/request_json.h"

// Private to this room.
namespace tacit::serve {

// Builds examples of one learner's schema from values that arrive one by one, in any order. Owns
// the memory of one row; not thread-safe. The transform must outlive it. Functions that fail leave
// the row unchanged; Begin starts a new one.
class RowReader {
 public:
  // A place in the schema.
  struct Column {
    bool is_dense = false;
    size_t index = 0;
  };

  explicit RowReader(const event::FeatureTransform& transform);

  void Begin();
  // Adds the row; values that were not set are missing values.
  void End(event::Batch* batch);

  size_t width(bool is_dense) const;
  const std::string& Name(Column column) const;
  // Finds the column of a feature.
  Result<Column> ColumnOf(std::string_view feature) const;
  // Does the same for one that is not yet set in this row.
  Result<Column> Find(std::string_view feature);
  Status Set(Column column, const http::JsonValue& value);
  // Sets a dense feature; kInvalidArgument for a number that is infinite.
  Status SetNumber(Column column, double number);
  // Sets a categorical feature; an empty text is a missing value.
  void SetText(Column column, std::string_view text);
  // Sets a multi-hot feature from values between BeginList and EndList. Keeps the first distinct
  // ones, up to the schema's maximum.
  Status BeginList(Column column);
  Status AddToList(const http::JsonValue& value);
  void AddText(std::string_view text);
  void EndList();

 private:
  // The range of a feature's rows in rows_; empty for a missing value.
  using Range = std::pair<size_t, size_t>;

  const event::FeatureTransform& transform_;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, Column> columns_;
  std::vector<float> missing_;  // the dense numbers of an empty row
  std::vector<float> dense_;
  std::vector<uint64_t> rows_;
  std::vector<Range> slots_;
  std::vector<bool> has_dense_, has_slot_;  // by name
  size_t list_feature_ = 0;
  DistinctRows distinct_;  // of the list
};

}  // namespace tacit::serve
