#include "tape/disk_life.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <utility>

#include "support/held_clock.h"
#include "support/process.h"
#include "tape/watched_noise.h"
#include "wiring/plans/source.h"
#include "wiring/restore/restore.h"

namespace tacit::tape {
namespace {

namespace fs = std::filesystem;

constexpr LearnerIndex kIt = LearnerIndex(0);

// The records of these offsets as lines; an offset without a record has a line that is none.
std::string LinesOf(const event::Batch& batch, uint64_t begin, uint64_t end) {
  std::string lines;
  size_t i = 0;
  while (i < batch.size() && batch.offset[i] < begin) ++i;
  for (uint64_t offset = begin; offset < end; ++offset) {
    if (i == batch.size() || batch.offset[i] != offset) {
      lines += "no record\n";
      continue;
    }
    lines += fmt::format(R"({{"label":{},"user":"{}","features":{{"n":{})", batch.label[i],
                         batch.user[i], batch.dense[i * batch.dense_width]);
    for (size_t s = 0; s < batch.slots; ++s)
      lines += fmt::format(R"(,"{}":"{}")", s == 0 ? "C" : "D", batch.row[i * batch.slots + s]);
    lines += "}";
    if (!batch.item.empty()) lines += fmt::format(R"(,"item":"item-{}")", batch.item[i]);
    lines += "}\n";
    ++i;
  }
  return lines;
}

class NoLetters final : public event::DeadLetterSink {
  Status Write(std::span<const event::DeadLetter>) override { return {}; }
};

class DiskLife {
 public:
  DiskLife(Case tried, const Records& records, const Circumstances& circumstances,
           PlantLearner plant, Look look)
      : tried_(std::move(tried)),
        records_(records),
        circumstances_(circumstances),
        plant_(std::move(plant)),
        look_(std::move(look)) {}

  Life Live(const Acts& acts) && {
    noise::StartCoins(static_cast<uint8_t>(circumstances_.seed));
    Learn();
    if (acts.restore == Acts::Restore::kCheckpoint) MakeCheckpoint();
    if (acts.restore == Acts::Restore::kOlderCopy || acts.restore == Acts::Restore::kUnnoticed)
      Copy("store", "copy");
    if (acts.restore == Acts::Restore::kUnnoticed) Copy("store.witness", "copy.witness");
    if (acts.renames) renames_[std::exchange(tried_.id, "other")] = "other";
    if (acts.grows) tried_.buckets += tried_.buckets - 1;  // each but that of missing values
    Learn();
    if (acts.restore != Acts::Restore::kNone) Restore(acts.restore);
    Learn();
    return std::move(life_);
  }

 private:
  std::unique_ptr<store::Store> Open(const wiring::Assembly& assembly) {
    store::StoreOptions options = wiring::MakeStoreOptions(assembly);
    options.renames = renames_;
    options.clock = &clock_;
    auto store = store::Store::Open(std::move(options));
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }

  // Writes the log's next file, starts the service and learns to the end.
  void Learn() {
    const uint64_t begin = files_ * kPeriod;
    test::WriteFile(dir_ / fmt::format("log-{}.jsonl", files_++),
                    LinesOf(records_.batch(), begin, begin + kPeriod));
    const Subject subject(tried_, dir_.path());
    const wiring::Assembly& assembly = subject.assembly();
    const auto store = Open(assembly);
    const auto source = wiring::OpenSource(assembly.config.source);
    ASSERT_TRUE(source) << source.error().message;
    const auto positions = wiring::ReadPositions(assembly, *store);
    ASSERT_TRUE(positions) << positions.error().message;
    metrics::Registry registry;
    train::Progress progress(1);
    NoLetters letters;
    Taper taper(subject, circumstances_, &life_);
    const auto learning = wiring::Learning::Make(
        {.assembly = assembly,
         .store = *store,
         .source = **source,
         .dead_letters = letters,
         .clock = clock_,
         .registry = registry,
         .progress = progress,
         .noise = [&](auto) { return taper.Noise(); },
         .choose = [&](const wiring::LearnerPlan&,
                       const auto& make) -> Result<std::unique_ptr<train::Learner>> {
           TACIT_ASSIGN(auto learner, make(nullptr));
           if (plant_) learner = plant_(std::move(learner));
           return taper.Taped(std::move(learner));
         }},
        *positions);
    ASSERT_TRUE(learning) << learning.error().message;
    ASSERT_TRUE((*learning)->intake().Start());
    const auto outcome = (*learning)->trainer().Run((*learning)->intake().steps());
    (*learning)->intake().Stop();
    EXPECT_TRUE(outcome) << outcome.error().message;
    Show(subject, *store);
    if (look_)
      look_({.subject = subject,
             .records = records_,
             .store = *store,
             .source = **source,
             .learning = **learning,
             .progress = progress,
             .registry = registry,
             .clock = clock_,
             .outcome = outcome});
  }

  void Show(const Subject& subject, store::Store& store) {
    const auto snapshot = store.Latest();
    const store::LearnerState state = store.State(kIt);
    ShownCommit shown{.position = state.position};
    for (const privacy::LedgerTotal& total : snapshot->learners())
      shown.bill +=
          fmt::format("{}: {} steps, epsilon {}; ", total.learner, total.steps, total.epsilon);
    const auto entries = snapshot->LedgerEntries(0, snapshot->ledger_entries());
    ASSERT_TRUE(entries);
    for (const std::string& bytes : *entries) {
      const auto entry = privacy::LedgerEntry::Decode(bytes);
      ASSERT_TRUE(entry);
      if (entry->steps > 0)
        shown.mu_squared += static_cast<double>(entry->steps) * entry->charge.MuSquared();
    }
    if (circumstances_.leads == nullptr && life_.unpaid.empty())
      life_.unpaid = Unpaid(life_.tape, shown.mu_squared);
    if (state.released) shown.released = *state.released;
    if (state.dense) {
      shown.dense = BytesOf(state.dense->parameters) + BytesOf(state.dense->optimizer);
    }
    const store::RowLayout layout = subject.plan().model->Rows();
    std::vector<uint64_t> ids(layout.space.rows());
    std::iota(ids.begin(), ids.end(), uint64_t{0});
    size_t floats = 0;
    for (const uint64_t id : ids) floats += layout.space.tables()[layout.space.TableOf(id)].dim;
    std::vector<float> rows(floats);
    if (!ids.empty()) {
      EXPECT_TRUE(snapshot->Rows(kIt, ids, rows));
    }
    shown.rows = BytesOf(rows);
    life_.commits.push_back(std::move(shown));
  }

  void Copy(const std::string& from, const std::string& to) {
    fs::copy(dir_ / from, dir_ / to,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }

  void MakeCheckpoint() {
    const Subject subject(tried_, dir_.path());
    const auto store = Open(subject.assembly());
    const auto made = store->MakeCheckpoint({.parent = dir_ / "checkpoints"});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint_ = made->place.folder;
  }

  // The store is lost, and made anew of what there was before the last file.
  void Restore(Acts::Restore road) {
    const Subject subject(tried_, dir_.path());
    fs::remove_all(dir_ / "store");
    if (road == Acts::Restore::kCheckpoint) {
      const auto report =
          wiring::RestoreStore(subject.assembly(), {.from = checkpoint_, .remains = {}});
      ASSERT_TRUE(report) << report.error().message;
      Charged(report->gaps);
      return;
    }
    Copy("copy", "store");
    if (road == Acts::Restore::kUnnoticed) return Copy("copy.witness", "store.witness");
    const auto report = wiring::AcceptOlderCopy(subject.assembly());
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_TRUE(*report);
    Charged((*report)->gaps);
  }
  void Charged(std::span<const store::LearnerGap> gaps) {
    ShownCommit shown;
    for (const store::LearnerGap& gap : gaps)
      for (const privacy::CommitCharge& charge : gap.charges) shown.bill += TextOf(charge);
    EXPECT_FALSE(shown.bill.empty());
    life_.commits.push_back(std::move(shown));
  }

  Case tried_;
  const Records& records_;
  const Circumstances& circumstances_;
  const PlantLearner plant_;
  const Look look_;
  const test::TempDir dir_;
  const test::HeldClock clock_;
  std::map<std::string, std::string> renames_;
  std::string checkpoint_;
  uint64_t files_ = 0;
  Life life_;
};

}  // namespace

Life LiveOnDisk(const Case& tried, const Records& records, const Circumstances& circumstances,
                const Acts& acts, const PlantLearner& plant, const Look& look) {
  return DiskLife(tried, records, circumstances, plant, look).Live(acts);
}

}  // namespace tacit::tape
