#include "tape/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tacit::tape {
namespace {

constexpr size_t kUsers = 10;
constexpr char kCanaryUser[] = "user-0";

}  // namespace

double NumberOf(uint64_t i) {
  static constexpr std::array kNumbers = {1.0, 0.0, -0.5, 30.0, -30.0, 1e3, -1e6, 1e30};
  return kNumbers[i % kNumbers.size()];
}

Records::Records(const Subject& subject, uint64_t seed) : subject_(subject), random_(seed) {
  const bool users = subject.tried().of_users();
  unit_.keeps_label = subject.tried().query == privacy::Query::kRepresentation;
  if (users) unit_.user = kCanaryUser;
  unit_.offset = users ? kOffsets : random_() % kOffsets;
  batch_.dense_width = subject.assembly().transform->schema().dense.size();
  batch_.slots = subject.assembly().transform->row_space().tables().size();
  const std::array<uint64_t, 4> rows = {1, 4, 1000, 1000};  // of a table that have records
  const uint64_t most_rows =
      subject.tried().query == privacy::Query::kTopRows ? 4 : rows[random_() % rows.size()];
  const double number = NumberOf(random_());
  const size_t share = 1 + random_() % (kUsers + 1);  // 1: all records are the canary's
  const size_t lacking = unit_.keeps_label ? 0 : random_() % 8;
  for (uint64_t offset = 0; offset < kOffsets; ++offset) {
    const size_t user = random_() % share == 0 ? 0 : 1 + random_() % (kUsers - 1);
    const bool canary = users ? user == 0 : offset == unit_.offset;
    if (random_() % 16 < lacking && !canary) continue;
    Add(offset, fmt::format("user-{}", user), canary ? number : NumberOf(random_() % 3), most_rows);
  }
}

void Records::Add(uint64_t offset, const std::string& user, double number, uint64_t rows) {
  batch_.offset.push_back(offset);
  batch_.timestamp_ms.push_back(static_cast<int64_t>(offset + 1));
  batch_.label.push_back(subject_.tried().of_items() ? 1 : static_cast<float>(random_() % 2));
  batch_.dense.insert(batch_.dense.end(), batch_.dense_width, static_cast<float>(number));
  for (const RowSpace::Table& table : subject_.assembly().transform->row_space().tables()) {
    batch_.row.push_back(table.first + random_() % std::min(rows, table.rows));
    batch_.slot_end.push_back(static_cast<uint32_t>(batch_.row.size()));
  }
  batch_.user.Append(user);
  if (subject_.tried().of_items()) batch_.item.push_back(random_() % kItems);
}

Records Records::Beside(uint64_t seed) const {
  Records other(subject_, seed);
  if (unit_.keeps_label) other.batch_.label = batch_.label;
  return other;
}

Records Records::WithoutUnit() const {
  Records without(*this);
  without.batch_ = event::EmptyLike(batch_);
  for (size_t i = 0; i < batch_.size(); ++i)
    if (!unit_.Has(batch_, i)) without.batch_.AppendRange(batch_, i, i + 1);
  return without;
}

Records Records::Nothing() const {
  Records nothing(*this);
  event::Batch& batch = nothing.batch_;
  if (!unit_.keeps_label) {
    batch = event::EmptyLike(batch);
    return nothing;
  }
  std::ranges::fill(batch.dense, 0.0f);
  std::ranges::fill(batch.slot_end, 0u);
  batch.row.clear();
  return nothing;
}

}  // namespace tacit::tape
