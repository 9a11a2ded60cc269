#include "unit/cuda/home_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "cuda/rows/row_index.h"
#include "store/rows/row_arrival.h"
#include "unit/cuda/uploads.h"

namespace tacit::cuda::testing {
namespace {

constexpr uint32_t kHomeFloats = 6;

store::RowLayout HomeLayout() {
  store::RowLayout layout;
  layout.space.AddTable("many", 300, 3);
  layout.space.AddTable("one", 1, 2);
  layout.space.AddTable("wide", 120, 5);
  layout.state_floats = {2, 0, 1};
  layout.initial_scale = {0, 0, 0};
  return layout;
}

}  // namespace

HomeStore::HomeStore(const store::RowLayout& layout) {
  for (uint32_t t = 0; t < layout.space.tables().size(); ++t)
    for (uint64_t i = 0; i < layout.space.tables()[t].rows; ++i)
      rows.emplace_back(layout.RowFloats(t), static_cast<float>(rows.size()) + 0.5f);
}

Status HomeStore::Read(std::span<const uint64_t> wanted, std::span<float* const> out) {
  for (size_t i = 0; i < wanted.size(); ++i) std::ranges::copy(rows[wanted[i]], out[i]);
  return {};
}

CommitSeq HomeStore::Enqueue(std::shared_ptr<const store::RowDelta> delta) {
  deltas_[++enqueued_] = std::move(delta);
  return CommitSeq(enqueued_);
}

void HomeStore::Fold() {
  const auto delta = std::move(deltas_.at(folded_ + 1));
  deltas_.erase(folded_ + 1);
  TACIT_CHECK(store::Arrive(*delta).has_value());
  for (size_t i = 0; i < delta->size(); ++i)
    rows[delta->rows[i]].assign(delta->Row(i).begin(), delta->Row(i).end());
  ++folded_;
}

HomeRig::HomeRig(Device& device, uint64_t seed, std::function<void()> late)
    : random_(seed),
      layout_(HomeLayout()),
      late_(std::move(late)),
      store_(layout_),
      cache_(std::make_unique<store::RowCache>(layout_, random_() % 2 ? 4000 : 1 << 20, store_)),
      truth_(store_.rows),
      settled_(store_.rows),
      compute_(MakeStream(device)) {
  auto whole = WholeRows::Make(compute_, layout_.space, layout_.state_floats,
                               WholeRows::Writes::kSomeRows, *cache_);
  EXPECT_TRUE(whole) << whole.error().message;
  if (whole) whole_ = std::move(*whole);
}

bool HomeRig::Ok(const Status& status) {
  EXPECT_TRUE(status) << status.error().message;
  findings_.failed += !status;
  return status.has_value();
}

void HomeRig::WriteRows(const Rows& rows) {
  std::vector<uint32_t> row;
  std::vector<float> floats;
  for (const auto& [number, values] : rows) {
    row.push_back(static_cast<uint32_t>(number));
    floats.insert(floats.end(), values.begin(), values.end());
    floats.resize(row.size() * kHomeFloats);
  }
  const auto row_device = Upload(compute_, row);
  const auto floats_device = Upload(compute_, floats);
  Ok(UnpackRows(compute_, whole_->view().places,
                {.row = row_device.span(),
                 .name = row_device.span(),
                 .stride = kHomeFloats,
                 .floats = floats_device.span()}));
  const auto changed = whole_->view().changed;
  if (loses_a_flag_) row.pop_back();
  for (const uint32_t one : row) Ok(compute_.Fill(changed.Sub(one, 1), 1));
  Ok(compute_.Synchronize());
}

// A step that writes some rows, often the same ones.
void HomeRig::Write() {
  Rows rows;
  for (size_t n = random_() % 60; n > 0; --n) {
    const uint64_t row = random_() % (random_() % 2 ? truth_.size() : 40);
    for (float& number : truth_[row]) number = next_number_++;
    rows[row] = truth_[row];
  }
  if (rows.empty()) return;
  WriteRows(rows);
  for (auto& [row, floats] : rows) written_[row] = std::move(floats);
}

std::shared_ptr<const store::RowDelta> HomeRig::Commit(Rows* written) {
  Ok(whole_->Settle());
  *written = std::exchange(written_, {});
  for (const auto& [row, floats] : *written) settled_[row] = floats;
  if (random_() % 3 == 0) Gather();  // before the delta is taken
  auto delta = cache_->TakeDelta();
  on_their_way_ += delta->arrival != nullptr;
  cache_->Enqueued(delta.get(), store_.Enqueue(delta));
  return delta;
}

void HomeRig::Check(const store::RowDelta& delta, const Rows& written) {
  findings_.checked += delta.size();
  for (const auto& [row, floats] : written) findings_.left_out += delta.Find(row) == delta.size();
  for (size_t i = 0; i < delta.size(); ++i) {
    const auto wanted = written.find(delta.rows[i]);
    findings_.not_asked += wanted == written.end();
    if (wanted != written.end())
      findings_.wrong_rows += !std::ranges::equal(delta.Row(i), wanted->second);
  }
}

void HomeRig::Gather() {
  std::vector<uint64_t> rows;
  for (uint64_t row = random_() % 7; row < settled_.size(); row += 1 + random_() % 20)
    rows.push_back(row);
  std::vector<float*> at(rows.size());
  if (!Ok(cache_->Gather(rows, at))) return;
  findings_.checked += rows.size();
  for (size_t i = 0; i < rows.size(); ++i)
    findings_.stale += !std::equal(settled_[rows[i]].begin(), settled_[rows[i]].end(), at[i]);
}

void HomeRig::Run(int steps) {
  if (whole_ == nullptr) return;
  for (int step = 0; step < steps; ++step) {
    for (size_t n = random_() % 3; n > 0; --n) Write();
    Rows written;
    const auto delta = Commit(&written);
    // A thread of the store's brings the rows beside the next step, or that step's gather does.
    Status arrived;
    std::thread commit;
    const auto arrive = [&] { arrived = store::Arrive(*delta); };
    const bool beside = late_ == nullptr && random_() % 2 == 0;
    if (beside) commit = std::thread(arrive);
    Write();
    if (random_() % 3 == 0) Gather();
    if (late_) late_();
    if (!beside) commit = std::thread(arrive);
    commit.join();
    if (Ok(arrived)) Check(*delta, written);
    while (random_() % 2 == 0 && store_.has_unfolded()) store_.Fold();
    if (random_() % 3 == 0) Gather();
  }
}

bool HomeRig::SettlesAsNumbers(float number) {
  const uint64_t row = random_() % truth_.size();
  truth_[row][random_() % truth_[row].size()] = number;
  WriteRows({{row, truth_[row]}});
  Ok(whole_->Settle());
  return whole_->settled_numbers();
}

Status HomeRig::ArriveBehind(const std::function<void()>& before) {
  WriteRows({{3, truth_[3]}});
  Ok(whole_->Settle());
  const auto delta = cache_->TakeDelta();
  EXPECT_NE(delta->arrival, nullptr);
  before();
  Status arrived = store::Arrive(*delta);
  EXPECT_EQ(store::Arrive(*delta).has_value(), arrived.has_value());
  if (!arrived) {
    const Status settled = whole_->Settle();
    EXPECT_FALSE(settled);
    EXPECT_TRUE(settled.error().message.starts_with(arrived.error().message));
    EXPECT_NE(settled.error().message.find("the rows of the commit before did not come home"),
              std::string::npos)
        << settled.error().message;
  }
  return arrived;
}

}  // namespace tacit::cuda::testing
