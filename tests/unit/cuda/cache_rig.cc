#include "unit/cuda/cache_rig.h"

#include <algorithm>
#include <map>

#include "unit/cuda/uploads.h"

namespace tacit::cuda::testing {
namespace {

constexpr uint32_t kFloatsMost = 6;

// Tables 0 and 1 are of one family.
store::RowLayout CacheLayout() {
  store::RowLayout layout;
  layout.space.AddTable("many", 700, 3);
  layout.space.AddTable("others", 300, 3);
  layout.space.AddTable("wide", 200, 5);
  layout.state_floats = {2, 2, 1};
  return layout;
}

std::vector<uint32_t> Narrow(const std::vector<uint64_t>& rows) {
  return {rows.begin(), rows.end()};
}

}  // namespace

CacheRig::CacheRig(Device& device, const CachedRowsOptions& options, uint64_t seed)
    : random_(seed),
      layout_(CacheLayout()),
      plain_(layout_),
      watched_(plain_, layout_),
      truth_(plain_.rows),
      compute_(MakeStream(device)) {
  auto cache = CachedRows::Make(compute_, layout_.space, layout_.state_floats, options, watched_);
  EXPECT_TRUE(cache) << cache.error().message;
  if (cache) cache_ = std::move(*cache);
}

bool CacheRig::Ok(const Status& status) {
  EXPECT_TRUE(status) << status.error().message;
  findings_.failed += !status;
  return status.has_value();
}

std::vector<uint32_t> CacheRig::Read(DeviceSpan<const uint32_t> from) {
  std::vector<uint32_t> values(from.size);
  Ok(compute_.Download(from, std::span<uint32_t>(values)));
  Ok(compute_.Synchronize());
  return values;
}

// Often rows of a few, so that steps share them.
CacheRig::Rows CacheRig::RandomRows(size_t most) {
  Rows rows(random_() % (most + 1));
  for (uint64_t& row : rows) {
    const RowSpace::Table& table = layout_.space.tables()[random_() % 3];
    row = table.first + random_() % (random_() % 2 ? table.rows : 40);
  }
  return rows;
}

// The floats behind these names, as work on the engine's stream sees them.
void CacheRig::Look(const Rows& rows, DeviceSpan<const uint32_t> names) {
  if (rows.empty()) return;
  const auto row = Narrow(rows);
  const auto row_device = Upload(compute_, row);
  auto floats = Buffer<float>::Make(compute_.device(), rows.size() * kFloatsMost);
  ASSERT_TRUE(floats);
  Ok(PackRows(
      compute_, cache_->view().places,
      {.row = row_device.span(), .name = names, .stride = kFloatsMost, .floats = floats->span()}));
  std::vector<float> seen(floats->size());
  Ok(compute_.Download(floats->span(), std::span<float>(seen)));
  const auto name = Read(names);
  std::map<uint64_t, uint32_t> name_of;
  std::map<uint32_t, uint64_t> row_of;
  for (size_t i = 0; i < rows.size(); ++i) {
    findings_.wrong_names += name_of.try_emplace(rows[i], name[i]).first->second != name[i];
    findings_.wrong_names += row_of.try_emplace(name[i], rows[i]).first->second != rows[i];
    findings_.wrong_names += name[i] >= cache_->names();
    const auto& want = truth_[rows[i]];
    findings_.checked += want.size();
    for (size_t c = 0; c < want.size(); ++c)
      findings_.wrong_floats += seen[i * kFloatsMost + c] != want[c];
  }
}

void CacheRig::Write(const Rows& rows, const std::vector<uint32_t>& names) {
  if (rows.empty()) return;
  std::vector<float> floats(rows.size() * kFloatsMost);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t c = 0; c < truth_[rows[i]].size(); ++c)
      floats[i * kFloatsMost + c] = truth_[rows[i]][c] = next_number_++;
    written_.insert(rows[i]);
  }
  const auto row = Narrow(rows);
  const auto row_device = Upload(compute_, row), name_device = Upload(compute_, names);
  const auto floats_device = Upload(compute_, floats);
  Ok(UnpackRows(compute_, cache_->view().places,
                {.row = row_device.span(),
                 .name = name_device.span(),
                 .stride = kFloatsMost,
                 .floats = floats_device.span()}));
  const auto changed = cache_->view().changed;
  for (const uint32_t name : names) Ok(compute_.Fill(changed.Sub(name, 1), 1));
  // The step runs on, while the cache fetches for the next one; the memory it reads stays.
  Ok(cache_->FetchAnnounced());
  Ok(compute_.Synchronize());
}

void CacheRig::Step(const Rows& rows) {
  const auto names = cache_->Begin(rows, DeviceRows::Purpose::kStep);
  if (!names) return void(Ok(Fail(names.error())));
  Look(rows, *names);
  Rows extra = RandomRows(30);
  for (const uint64_t row : rows)
    if (random_() % 10 == 0) extra.push_back(row);
  std::ranges::sort(extra);
  extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
  const auto name = rows.empty() ? std::vector<uint32_t>() : Read(*names);
  const auto extra_names = cache_->NameExtra(extra);
  if (!extra_names) return void(Ok(Fail(extra_names.error())));
  Look(extra, *extra_names);
  const auto extra_name = extra.empty() ? std::vector<uint32_t>() : Read(*extra_names);
  std::map<uint64_t, uint32_t> all;
  for (size_t i = 0; i < rows.size(); ++i) all.emplace(rows[i], name[i]);
  for (size_t i = 0; i < extra.size(); ++i)
    findings_.wrong_names += all.emplace(extra[i], extra_name[i]).first->second != extra_name[i];
  Rows write;
  std::vector<uint32_t> write_names;
  for (const auto& [row, its_name] : all) {
    if (random_() % 3 != 0) continue;
    write.push_back(row);
    write_names.push_back(its_name);
  }
  Write(write, write_names);
  if (write.empty()) Ok(cache_->FetchAnnounced());
  Ok(cache_->End(Narrow(write)));
}

void CacheRig::CheckHome() {
  Ok(cache_->Settle());
  marked_.merge(watched_.TakeMarked());
  for (const uint64_t row : marked_) findings_.marked_not_written += !written_.contains(row);
  for (const uint64_t row : written_) findings_.lost += plain_.rows[row] != truth_[row];
  for (const uint64_t row : written_) findings_.lost += !marked_.contains(row);
  written_.clear();
  marked_.clear();
}

void CacheRig::Run(int steps) {
  if (cache_ == nullptr) return;
  constexpr size_t kMost = 400;
  Rows next = RandomRows(kMost);
  for (int step = 0; step < steps; ++step) {
    const Rows rows = std::move(next);
    next = RandomRows(kMost);
    // Before the step: what is announced may come, or something else does.
    if (random_() % 4 != 0) cache_->Announce(random_() % 4 != 0 ? next : RandomRows(kMost));
    Step(rows);
    if (random_() % 3 == 0) CheckHome();
    if (random_() % 3 == 0) {
      const Rows preview = random_() % 2 ? RandomRows(kMost) : next;
      const auto names = cache_->Begin(preview, DeviceRows::Purpose::kPreview);
      if (!names) return void(Ok(Fail(names.error())));
      Look(preview, *names);
    }
    if (random_() % 6 == 0) {  // a step that is begun and abandoned
      const Rows other = RandomRows(kMost);
      const auto names = cache_->Begin(other, DeviceRows::Purpose::kStep);
      if (!names) return void(Ok(Fail(names.error())));
      Look(other, *names);
      Ok(compute_.Synchronize());
    }
  }
  CheckHome();
  for (size_t row = 0; row < truth_.size(); ++row)
    findings_.lost += plain_.rows[row] != truth_[row];
}

}  // namespace tacit::cuda::testing
