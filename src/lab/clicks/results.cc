#include "lab/clicks/results.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "base/hash.h"
#include "base/text.h"
#include "console/json_number.h"
#include "lab/run_lines.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

// The version of a record's content and of how runs are made; runs of older versions are made
// again.
constexpr int kFormat = 1;

double NumberOrInfinity(const json::value& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.to_number<double>();
}

tl::unexpected<Error> CannotWrite(const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("{}: cannot be written", path));
}

RunRecord FromJson(const json::object& o) {
  RunRecord record;
  record.id = o.at("id").as_string();
  record.learner = o.at("learner").as_string();
  record.mechanism = o.at("mechanism").as_string();
  for (const auto& [key, value] : o.at("settings").as_object())
    record.settings[std::string(key)] = value.as_string();
  record.seed = o.at("seed").to_number<uint64_t>();
  record.auc = o.at("auc").to_number<double>();
  record.log_loss = NumberOrInfinity(o.at("log_loss"));
  record.epsilon_spent = NumberOrInfinity(o.at("epsilon_spent"));
  record.rows_per_step = o.at("rows_written_per_step").to_number<double>();
  record.row_floats_per_step = o.at("row_floats_per_step").to_number<double>();
  record.steps = o.at("steps").to_number<uint64_t>();
  record.events = o.at("events").to_number<uint64_t>();
  record.events_measured = o.at("events_measured").to_number<uint64_t>();
  record.seconds = o.at("seconds").to_number<double>();
  return record;
}

}  // namespace

std::string RunId(const GridPoint& point, const std::string& log_identity, uint64_t train_to,
                  uint64_t measure_from, uint64_t measure_to, uint64_t seed) {
  const Digest digest =
      Sha256()
          .Update(fmt::format("tacit evaluate {}\n{}\n{} {} {} {}\n", kFormat, log_identity,
                              train_to, measure_from, measure_to, seed))
          .Update(point.canonical)
          .Finish();
  return ToHex(std::span(digest).first(16));
}

std::string ToJsonLine(const RunRecord& r) {
  json::object settings;
  for (const auto& [key, value] : r.settings) settings[key] = value;
  return json::serialize(json::object{{"id", r.id},
                                      {"learner", r.learner},
                                      {"mechanism", r.mechanism},
                                      {"settings", settings},
                                      {"seed", r.seed},
                                      {"auc", r.auc},
                                      {"log_loss", console::FiniteOrNull(r.log_loss)},
                                      {"epsilon_spent", console::FiniteOrNull(r.epsilon_spent)},
                                      {"rows_written_per_step", r.rows_per_step},
                                      {"row_floats_per_step", r.row_floats_per_step},
                                      {"steps", r.steps},
                                      {"events", r.events},
                                      {"events_measured", r.events_measured},
                                      {"seconds", r.seconds}});
}

Result<RunRecord> FromJsonLine(const std::string& line) {
  try {
    return FromJson(json::parse(line).as_object());
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kCorruption, fmt::format("not a finished run: {}", e.what()));
  }
}

Result<std::unique_ptr<Results>> Results::Open(const std::string& path, bool keep_predictions) {
  std::unique_ptr<Results> results(new Results(path, keep_predictions));
  if (path.empty()) return results;
  TACIT_RETURN_IF_ERROR(results->Load());
  if (keep_predictions) {
    std::error_code error;
    std::filesystem::create_directories(path + ".predictions", error);
    if (error) return CannotWrite(path + ".predictions");
  }
  return results;
}

Status Results::Load() {
  return ReadRunLines(path_, [&](const std::string& line) -> Status {
    TACIT_ASSIGN(RunRecord record, FromJsonLine(line));
    records_[record.id] = std::move(record);
    return {};
  });
}

std::string Results::PredictionFile(const std::string& id) const {
  return path_ + ".predictions/" + id + ".f32";
}

std::optional<RunRecord> Results::Find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto at = records_.find(id);
  if (at == records_.end()) return {};
  if (!keep_predictions_ || path_.empty()) return at->second;
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(PredictionFile(id), error);
  if (error || bytes != at->second.events_measured * sizeof(float)) return {};
  return at->second;
}

// Writes the predictions first: a record implies that they exist.
Status Results::Add(const RunRecord& record, std::vector<float> logits) {
  std::lock_guard lock(mutex_);
  // Stores the record as a later read would give it, since a number may lose its last bit in the
  // text.
  const std::string line = ToJsonLine(record);
  TACIT_ASSIGN(records_[record.id], FromJsonLine(line));
  if (path_.empty()) {
    if (keep_predictions_) predictions_[record.id] = std::move(logits);
    return {};
  }
  if (keep_predictions_) {
    std::ofstream file(PredictionFile(record.id), std::ios::binary);
    file.write(reinterpret_cast<const char*>(logits.data()),
               static_cast<std::streamsize>(logits.size() * sizeof(float)));
    if (!file.flush()) return CannotWrite(PredictionFile(record.id));
  }
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << line << '\n';
  if (!file.flush()) return CannotWrite(path_);
  return {};
}

Result<std::vector<float>> Results::Predictions(const std::string& id) const {
  std::lock_guard lock(mutex_);
  if (path_.empty()) return predictions_.at(id);
  std::ifstream file(PredictionFile(id), std::ios::binary);
  std::vector<float> logits(records_.at(id).events_measured);
  file.read(reinterpret_cast<char*>(logits.data()),
            static_cast<std::streamsize>(logits.size() * sizeof(float)));
  if (!file) return Fail(ErrorCode::kIo, PredictionFile(id) + ": cannot be read");
  return logits;
}

}  // namespace tacit::lab
