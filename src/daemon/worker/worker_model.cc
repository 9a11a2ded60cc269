#include "daemon/worker/worker_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tacit::daemon {
namespace {

// A version without anything that is served.
class Version final : public store::Snapshot {
 public:
  Version(store::CommitTip tip, std::string lineage)
      : tip_(std::move(tip)), lineage_(std::move(lineage)) {}

  CommitSeq version() const override { return tip_.seq; }
  const Digest& head() const override { return tip_.head; }
  std::string lineage() const override { return lineage_; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return tip_.learners; }
  const privacy::LedgerTotal& total() const override { return tip_.total; }
  uint64_t ledger_entries() const override { return tip_.ledger_entries; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override {
    return Nothing();
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  Status Rows(LearnerIndex, std::span<const uint64_t>, std::span<float>) const override {
    return Nothing();
  }

 private:
  static tl::unexpected<Error> Nothing() {
    return Fail(ErrorCode::kRefused, "a worker serves no model");
  }

  const store::CommitTip tip_;
  const std::string lineage_;
};

}  // namespace

std::optional<std::array<float, SummedRows::kFloats>> SummedRows::Put(
    uint64_t row, std::span<const float> floats) {
  namespace linear = model::linear;
  const auto [place, is_new] = places_.try_emplace(row, static_cast<uint32_t>(held_.size()));
  if (is_new) held_.emplace_back();
  Held& held = held_[place->second];
  const std::array<float, kFloats> before = {held[linear::kWeight], held[linear::kMove],
                                             held[linear::kPeriod]};
  held[linear::kWeight] = floats[0];
  held[linear::kMove] = floats[1];
  held[linear::kPeriod] = floats[2];
  return is_new ? std::nullopt : std::optional(before);
}

Status SummedRows::Gather(std::span<const uint64_t> rows, std::span<float*> out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto place = places_.find(rows[i]);
    out[i] = place == places_.end() ? none_.data() : held_[place->second].data();
  }
  return {};
}

WorkerModel::WorkerModel(std::vector<store::LearnerLayout> learners, const SipHash::Key& mark_key)
    : configured_(std::move(learners)), mark_(mark_key), released_(configured_.size()) {
  for (size_t i = 0; i < configured_.size(); ++i) rows_.push_back(std::make_unique<SummedRows>());
}

Status WorkerModel::Begin(const store::ReplicaOrigin& origin) {
  records_ = origin.learners;
  place_.assign(records_.size(), std::nullopt);
  for (size_t i = 0; i < configured_.size(); ++i) {
    const auto record =
        std::ranges::find(records_, configured_[i].name, &store::LearnerRecord::name);
    if (record == records_.end())
      return Fail(ErrorCode::kRefused, fmt::format("the feed has no learner '{}', which the "
                                                   "configuration has",
                                                   configured_[i].name));
    if (record->model_fingerprint != configured_[i].promise.model_fingerprint)
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner '{}' of the feed has another model than the configuration's",
                              configured_[i].name));
    place_[record->key] = i;
  }
  feed_ = origin.feed;
  lineage_ = origin.lineage;
  return {};
}

Status WorkerModel::Put(const store::ReplicaLearner& from) {
  const auto place = PlaceOf(from.key);
  if (!place) return {};
  if (from.released) released_[*place] = from.released;
  if (!from.rows) return {};
  const uint64_t rows = configured_[*place].rows.space.rows();
  for (size_t i = 0; i < from.rows->size(); ++i) {
    const std::span<const float> floats = from.rows->Row(i);
    if (from.rows->rows[i] >= rows || floats.size() != SummedRows::kFloats)
      return Fail(ErrorCode::kCorruption,
                  fmt::format("row {} of learner '{}' has {} floats, and is none of a feed for "
                              "workers",
                              from.rows->rows[i], configured_[*place].name, floats.size()));
    const uint64_t row = from.rows->rows[i];
    const auto before = rows_[*place]->Put(row, floats);
    mark_.Replace(before ? mark_.OfRow(from.key, row, *before) : 0,
                  mark_.OfRow(from.key, row, floats));
  }
  return {};
}

Status WorkerModel::Fill(const std::vector<store::ReplicaLearner>& learners) {
  for (const store::ReplicaLearner& learner : learners) TACIT_RETURN_IF_ERROR(Put(learner));
  return {};
}

// Else anybody who may write to the feed's topic could have workers sum by another model.
Status WorkerModel::CheckMark(const store::ReplicaVersion& version) const {
  std::vector<std::shared_ptr<const std::string>> released;
  for (const std::optional<size_t>& place : place_)
    released.push_back(place ? released_[*place] : nullptr);
  if (version.mark == mark_.Of(version.tip.head, released)) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("version {} has no mark of workers.key_file that fits its rows: the "
                          "trainer has another key, or another program has written to the feed",
                          version.tip.seq.value));
}

Status WorkerModel::Apply(store::ReplicaVersion version) {
  TACIT_RETURN_IF_ERROR(Fill(version.learners));
  TACIT_RETURN_IF_ERROR(CheckMark(version));
  position_ = std::move(version.position);
  latest_ = std::make_shared<Version>(std::move(version.tip), lineage_);
  return {};
}

std::optional<size_t> WorkerModel::PlaceOf(uint16_t key) const {
  return key < place_.size() ? place_[key] : std::nullopt;
}

}  // namespace tacit::daemon
