#include "lab/clicks/results.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "base/hash.h"
#include "base/text.h"

namespace tacit::lab {
namespace {

// The version of a record's content and of how runs are made; runs of older versions are made
// again.
constexpr int kFormat = 1;

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

Result<std::unique_ptr<Results>> Results::Open(const std::string& path, bool keep_predictions) {
  std::unique_ptr<Results> results(new Results(path, keep_predictions));
  TACIT_RETURN_IF_ERROR(results->records_.Load());
  if (keep_predictions && !path.empty()) {
    std::error_code error;
    std::filesystem::create_directories(path + ".predictions", error);
    if (error) return CannotWrite(path + ".predictions");
  }
  return results;
}

std::string Results::PredictionFile(const std::string& id) const {
  return records_.path() + ".predictions/" + id + ".f32";
}

std::optional<RunRecord> Results::Find(const std::string& id) const {
  std::optional<RunRecord> record = records_.Find(id);
  if (!record || !keep_predictions_ || records_.path().empty()) return record;
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(PredictionFile(id), error);
  if (error || bytes != record->events_measured * sizeof(float)) return {};
  return record;
}

// Writes the predictions first: a record implies that they exist.
Status Results::Add(const RunRecord& record, std::vector<float> logits) {
  if (keep_predictions_ && records_.path().empty()) {
    const MutexLock lock(mutex_);
    predictions_[record.id] = std::move(logits);
  } else if (keep_predictions_) {
    std::ofstream file(PredictionFile(record.id), std::ios::binary);
    file.write(reinterpret_cast<const char*>(logits.data()),
               static_cast<std::streamsize>(logits.size() * sizeof(float)));
    if (!file.flush()) return CannotWrite(PredictionFile(record.id));
  }
  return records_.Add(record);
}

Result<std::vector<float>> Results::Predictions(const std::string& id) const {
  if (records_.path().empty()) {
    const MutexLock lock(mutex_);
    return predictions_.at(id);
  }
  std::ifstream file(PredictionFile(id), std::ios::binary);
  std::vector<float> logits(records_.Find(id)->events_measured);
  file.read(reinterpret_cast<char*>(logits.data()),
            static_cast<std::streamsize>(logits.size() * sizeof(float)));
  if (!file) return Fail(ErrorCode::kIo, PredictionFile(id) + ": cannot be read");
  return logits;
}

}  // namespace tacit::lab
