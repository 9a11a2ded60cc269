#include "serve/scoring/score_request.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "http/request_json.h"
#include "serve/scoring/row_reader.h"

namespace tacit::serve {

// Reads a request as it streams by. Rows can be read only once the schema is known: if the learner
// is named after them, they are skipped, and the body is read a second time.
struct ScoreRequestParser::Impl {
  using Kind = http::JsonPlace::Kind;

  Impl(std::vector<Target> all, Limits limited, std::vector<http::LearnerElsewhere> others)
      : targets(std::move(all)), limits(limited), elsewhere(std::move(others)) {
    for (const Target& target : targets) {
      readers.emplace_back(*target.transform);
      learners.push_back(target.learner);
    }
  }
  // The tables refer to each other.
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status TakeLearner(std::string_view name) {
    learner = name;
    TACIT_ASSIGN(const size_t target, http::FindLearner(learner, learners, elsewhere));
    reader = &readers[target];
    return {};
  }
  Result<bool> BeginRows() {
    if (reader == nullptr && learners.size() == 1) reader = &readers[0];
    passed_over = reader == nullptr;
    return !passed_over;
  }
  Status AddToList(const http::JsonValue& value) {
    if (++values > limits.max_values)
      return http::BadRequest(
          fmt::format("more than {} values of sets in one request", limits.max_values));
    return reader->AddToList(value);
  }
  Result<bool> BeginRow() {
    reader->Begin();
    has_columns = has_features = false;
    return true;
  }
  Status EndRow() {
    reader->End(batch);
    return {};
  }
  Result<bool> BeginColumns(bool is_dense) {
    has_columns = true;
    column = {is_dense, 0};
    columns = 0;
    width = reader->width(is_dense);
    return CheckAlone();
  }
  Result<bool> BeginFeatures() {
    has_features = true;
    return CheckAlone();
  }
  Result<bool> CheckAlone() const {
    if (!has_columns || !has_features) return true;
    return http::BadRequest(RowText() + ": \"features\" stands alone in its row");
  }
  Status EndColumns() const {
    if (columns == width) return {};
    return http::BadRequest(fmt::format("{}: \"{}\" has {} values, the schema {}", RowText(),
                                        column.is_dense ? "dense" : "categorical", columns, width));
  }
  // Goes on to the next column, unless keys name the features. Returns false for a column too many,
  // which the end of the array reports.
  bool NextColumn() {
    if (has_features) return true;
    column.index = columns++;
    return column.index < width;
  }
  Status TakeValue(const http::JsonValue& is) {
    if (!NextColumn()) return {};
    Status set = reader->Set(column, is);
    if (!set) return OfRow(std::move(set));
    return {};
  }
  Status TakeKey(std::string_view feature) {
    auto found = reader->Find(feature);
    if (!found) return OfRow(Fail(std::move(found.error())));
    column = *found;
    return {};
  }
  Result<bool> BeginList() {
    if (!NextColumn()) return false;
    TACIT_RETURN_IF_ERROR(OfRow(reader->BeginList(column)));
    return true;
  }
  std::string RowText() const { return fmt::format("row {}", batch->size()); }
  // Names the row in a failure.
  [[gnu::noinline]] Status OfRow(Status status) const {
    if (status) return status;
    return Fail(std::move(status.error()).Context(RowText()));
  }

  const std::vector<Target> targets;
  const Limits limits;
  const std::vector<http::LearnerElsewhere> elsewhere;
  std::vector<RowReader> readers;
  std::vector<std::string_view> learners;  // names of the targets

  // The request that is read.
  event::Batch* batch = nullptr;
  RowReader* reader = nullptr;
  std::optional<std::string> learner;
  bool passed_over = false, has_columns = false, has_features = false;
  size_t columns = 0, width = 0;  // of the array that is read: so far, and in the schema
  size_t values = 0;              // of sets
  RowReader::Column column;

  // Its form.
  const http::JsonParts list{
      .element = {.kind = Kind::kAny,
                  .take = [this](auto& text) { return OfRow(AddToList(text)); }},
      .begin = [this] { return BeginList(); },
      .end = [this]() -> Status {
        reader->EndList();
        return {};
      }};
  const http::JsonPlace value{
      .kind = Kind::kAny, .take = [this](auto& is) { return TakeValue(is); }, .array = &list};
  const http::JsonParts dense{.element = value,
                              .begin = [this] { return BeginColumns(true); },
                              .end = [this] { return EndColumns(); }};
  const http::JsonParts categorical{.element = value,
                                    .begin = [this] { return BeginColumns(false); },
                                    .end = [this] { return EndColumns(); }};
  const http::JsonParts features{.key = [this](std::string_view name) { return TakeKey(name); },
                                 .element = value,
                                 .begin = [this] { return BeginFeatures(); }};
  const std::array<http::JsonKey, 3> row_keys = {{{"dense", {.array = &dense}},
                                                  {"categorical", {.array = &categorical}},
                                                  {"features", {.object = &features}}}};
  const http::JsonParts row{
      .keys = row_keys, .begin = [this] { return BeginRow(); }, .end = [this] { return EndRow(); }};
  const http::JsonParts rows{.element = {.object = &row},
                             .elements_most = limits.max_rows,
                             .too_many = "more than {} rows in one request",
                             .begin = [this] { return BeginRows(); },
                             .where = [this] { return RowText(); }};
  const std::array<http::JsonKey, 2> keys = {
      {{"learner",
        {.kind = Kind::kText, .take = [this](auto& name) { return TakeLearner(name.text); }}},
       {"rows", {.array = &rows}, true}}};
};

ScoreRequestParser::ScoreRequestParser(std::vector<Target> targets, Limits limits,
                                       std::vector<http::LearnerElsewhere> elsewhere)
    : impl_(std::make_unique<Impl>(std::move(targets), limits, std::move(elsewhere))) {}
ScoreRequestParser::~ScoreRequestParser() = default;

Result<size_t> ScoreRequestParser::Parse(std::string_view text, event::Batch* batch) {
  Impl& is = *impl_;
  batch->Clear();
  is.batch = batch;
  is.reader = nullptr;
  is.learner.reset();
  is.passed_over = false;
  is.values = 0;
  TACIT_RETURN_IF_ERROR(http::ReadJson(text, is.limits.max_depth, is.keys));
  TACIT_ASSIGN(const size_t target, http::FindLearner(is.learner, is.learners));
  if (is.passed_over) TACIT_RETURN_IF_ERROR(http::ReadJson(text, is.limits.max_depth, is.keys));
  const event::FeatureSchema& schema = is.targets[target].transform->schema();
  batch->dense_width = schema.dense.size();
  batch->slots = schema.categorical.size();
  return target;
}

}  // namespace tacit::serve
