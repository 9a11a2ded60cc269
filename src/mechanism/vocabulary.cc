// DP-FEST's vocabulary, by one Gaussian histogram:
//   h_i[j] = 1 if unit i activates row j, scaled as a vector by min(1, C / sqrt(rows active in i));
//   H = sum_i h_i + C s N(0, 1), over the WHOLE id space,
// released once per period and charged once, as one Gaussian of noise multiplier s that no sampling
// amplifies: every unit of the period is in it. The running count is the sum of the released
// histograms; its top rows, and all else that is made of it, cost nothing more.
//
// The state: a selector's state inside that of private_step.cc, with or without a threshold; empty
// if nothing was released. The notation is base/bytes.h's.
//     state   := version:u32 query:u8 source:u8 rows:u64 releases:u64 kept
//     version := 1
//     query   := 0 a histogram, 1 choice/top_rows_vocabulary.cc
//     source  := 1 first period, 2 running
//     kept    := count:f32*rows            a histogram's, of each row; the rest follows
#include "mechanism/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/check.h"
#include "mechanism/contribution.h"
#include "mechanism/grid.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

constexpr uint32_t kVocabularyVersion = 1;
constexpr uint8_t kHistogramQuery = 0;

using Source = VocabularyOptions::Source;

// The `keep` rows of the largest counts, ascending. Of equal counts the lower row comes first.
std::vector<uint64_t> TopRows(std::span<const float> counts, uint64_t keep) {
  std::vector<uint64_t> rows;
  if (keep == 0) return rows;
  std::vector<float> ordered(counts.begin(), counts.end());
  const auto last = ordered.begin() + static_cast<ptrdiff_t>(keep - 1);
  std::nth_element(ordered.begin(), last, ordered.end(), std::greater<>());
  const float least = *last;
  auto ties = keep - static_cast<uint64_t>(std::count_if(counts.begin(), counts.end(),
                                                         [&](float c) { return c > least; }));
  rows.reserve(keep);
  for (uint64_t row = 0; row < counts.size(); ++row) {
    if (counts[row] < least || (counts[row] == least && ties == 0)) continue;
    if (counts[row] == least) --ties;
    rows.push_back(row);
  }
  return rows;
}

void CheckAscending(std::span<const uint64_t> rows, uint64_t space) {
  TACIT_CHECK(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end() &&
                  (rows.empty() || rows.back() < space),
              "a vocabulary's rows ascend and lie in the space");
}

class PublicVocabulary final : public Vocabulary {
 public:
  PublicVocabulary(const RowSpace& space, std::vector<uint64_t> rows) : rows_(std::move(rows)) {
    CheckAscending(rows_, space.rows());
  }
  std::span<const uint64_t> rows() const override { return rows_; }
  uint64_t keep() const override { return rows_.size(); }
  std::span<const float> counts() const override { return {}; }
  bool observes_periods() const override { return false; }
  void Observe(const model::Activations&) override {}
  std::optional<privacy::Charge> opening_charge() const override { return {}; }
  void OpenPeriod(noise::NoiseSource&) override {}
  uint64_t state_version() const override { return 0; }
  std::string SaveState() const override { return {}; }
  Status LoadState(std::string_view bytes) override {
    if (bytes.empty()) return {};
    return Fail(ErrorCode::kCorruption,
                "the stored vocabulary was released, and the configured one is public");
  }

 private:
  const std::vector<uint64_t> rows_;
};

class HistogramVocabulary final : public ReleasedVocabulary {
 public:
  HistogramVocabulary(const RowSpace& space, const VocabularyOptions& options)
      : ReleasedVocabulary(space, options, kHistogramQuery),
        grid_(MakeHistogramGrid(options.clip, options.noise_multiplier)) {}

  std::span<const float> counts() const override { return counts_; }

 private:
  void Add(const model::Activations& activations) override {
    sums_.resize(space_.rows());
    for (size_t unit = 0; unit < activations.units(); ++unit) {
      const auto rows = activations.UnitRows(unit);
      if (rows.empty()) continue;
      const int64_t contribution = ContributionSteps(options_.clip, grid_, rows.size());
      for (uint32_t place : rows) sums_[activations.rows[place]] += contribution;
    }
  }

  privacy::Charge Cost() const override {
    return {.mechanism = privacy::MechanismKind::kVocabulary,
            .noise_multiplier = options_.noise_multiplier,
            .sigma_selection = options_.noise_multiplier,
            .clip_selection = options_.clip};
  }

  void Release(noise::NoiseSource& noise) override {
    sums_.resize(space_.rows());  // an empty period is released like any other
    std::vector<float> released(space_.rows());
    const noise::Declaration declared(noise, {"vocabulary", options_.clip / grid_.step});
    mechanism::Release(grid_, 1, noise, sums_, released);
    sums_ = {};
    if (counts_.empty()) {
      counts_ = std::move(released);
    } else {
      for (size_t row = 0; row < counts_.size(); ++row) counts_[row] += released[row];
    }
    rows_ = TopRows(counts_, keep_);
  }

  void SaveBody(ByteWriter* bytes) const override {
    bytes->PutArray(std::span<const float>(counts_));
  }
  // Loads the counts; the rows follow from them.
  bool LoadBody(ByteReader* bytes) override {
    if (bytes->remaining() != space_.rows() * sizeof(float)) return false;
    std::vector<float> counts(space_.rows());
    bytes->GetArray(std::span(counts));
    if (!std::all_of(counts.begin(), counts.end(), [](float c) { return std::isfinite(c); }))
      return false;
    counts_ = std::move(counts);
    rows_ = TopRows(counts_, keep_);
    return true;
  }

  const Grid grid_;
  std::vector<int64_t> sums_;  // of the period being shown, in steps; empty between periods
  std::vector<float> counts_;
};

}  // namespace

ReleasedVocabulary::ReleasedVocabulary(const RowSpace& space, const VocabularyOptions& options,
                                       uint8_t query)
    : space_(space), options_(options), keep_(std::min(options.keep, space.rows())), query_(query) {
  TACIT_CHECK(options.rows.empty(), "rows are given to a public vocabulary alone");
  TACIT_CHECK(options.keep > 0, "a vocabulary keeps some rows");
  TACIT_CHECK(space.rows() <= kVocabularySpaceMax, "too many rows to count");
  for (double positive : {options.noise_multiplier, options.clip})
    TACIT_CHECK(positive > 0 && std::isfinite(positive), "a vocabulary needs noise and a clip");
}

std::string ReleasedVocabulary::SaveState() const {
  if (releases_ == 0) return {};
  ByteWriter bytes;
  bytes.Put(kVocabularyVersion).Put(query_);
  bytes.Put(static_cast<uint8_t>(options_.source));
  bytes.Put(space_.rows()).Put(releases_);
  SaveBody(&bytes);
  return std::move(bytes).Take();
}

Status ReleasedVocabulary::LoadState(std::string_view bytes) {
  if (bytes.empty()) return {};  // nothing was released
  ByteReader reader(bytes);
  const auto version = reader.Get<uint32_t>();
  const auto query = reader.Get<uint8_t>(), source = reader.Get<uint8_t>();
  const auto space = reader.Get<uint64_t>(), releases = reader.Get<uint64_t>();
  const auto other = [](const char* what) {
    return Fail(ErrorCode::kCorruption,
                fmt::format("the stored vocabulary is of another {} than is configured", what));
  };
  if (version != kVocabularyVersion)
    return Fail(ErrorCode::kCorruption, "the stored vocabulary is of an unknown version");
  if (query != query_) return other("query");
  if (source != static_cast<uint8_t>(options_.source)) return other("source");
  if (space != space_.rows() || releases == 0 || !LoadBody(&reader))
    return Fail(ErrorCode::kCorruption, "the stored vocabulary is not one of this configuration");
  releases_ = releases;
  return {};
}

std::unique_ptr<Vocabulary> MakeVocabulary(const RowSpace& space, VocabularyOptions options) {
  if (options.source == Source::kPublic) {
    TACIT_CHECK(options.keep == 0 || options.keep == options.rows.size(),
                "of public rows all are kept");
    return std::make_unique<PublicVocabulary>(space, std::move(options.rows));
  }
  return std::make_unique<HistogramVocabulary>(space, options);
}

}  // namespace tacit::mechanism
