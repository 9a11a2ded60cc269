// DP-FEST's vocabulary. The paper calls one-shot Gumbel top-k (epsilon, 0)-DP; it is not: it costs
// k epsilon^2 / 8 zCDP (gumbel_top.h). The default is one Gaussian histogram instead:
//   h_i[j] = 1 if unit i activates row j, scaled as a vector by min(1, C / sqrt(rows active in i));
//   H = sum_i h_i + C s N(0, 1), over the WHOLE id space,
// released once per period and charged once, as one Gaussian of noise multiplier s that no sampling
// amplifies: every unit of the period is in it. The running count is the sum of the released
// histograms; its top rows, and whatever else is made of it, cost nothing more.
//
// The state: a selector's state inside that of private_step.cc, with or without a threshold; empty
// if nothing was released. The notation is base/bytes.h's.
//     state   := version:u32 query:u8 source:u8 rows:u64 releases:u64 kept
//     version := 1
//     query   := 0 Gaussian, 1 Gumbel
//     source  := 1 first period, 2 running
//     kept    := count:f32*rows            Gaussian: of each row of the space; the rest follows
//              | row:u32*keep              Gumbel: the rows kept, ascending
#include "mechanism/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "mechanism/contribution.h"
#include "mechanism/grid.h"
#include "mechanism/gumbel_top.h"

namespace tacit::mechanism {
namespace {

constexpr uint32_t kVocabularyVersion = 1;

using Source = VocabularyOptions::Source;
using Query = VocabularyOptions::Query;

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

// The common part of the two queries: when there is a release, what it costs, and the state.
class ReleasedVocabulary : public Vocabulary {
 public:
  ReleasedVocabulary(const RowSpace& space, const VocabularyOptions& options)
      : space_(space), options_(options), keep_(std::min(options.keep, space.rows())) {
    TACIT_CHECK(options.rows.empty(), "rows are given to a public vocabulary alone");
    TACIT_CHECK(options.keep > 0, "a vocabulary keeps some rows");
    TACIT_CHECK(space.rows() <= kVocabularySpaceMax, "too many rows to count");
    for (double positive : {options.noise_multiplier, options.clip})
      TACIT_CHECK(positive > 0 && std::isfinite(positive), "a vocabulary needs noise and a clip");
  }

  std::span<const uint64_t> rows() const final { return rows_; }
  uint64_t keep() const final { return keep_; }
  bool observes_periods() const final { return Releases(); }
  void Observe(const model::Activations& activations) final {
    if (Releases()) Add(activations);
  }
  std::optional<privacy::Charge> opening_charge() const final {
    if (!Releases()) return {};
    return Cost();
  }
  void OpenPeriod(noise::NoiseSource& noise) final {
    if (!Releases()) return;
    Release(noise);
    ++releases_;
  }

  uint64_t state_version() const final { return releases_; }
  std::string SaveState() const final;
  Status LoadState(std::string_view bytes) final;

 protected:
  virtual void Add(const model::Activations& activations) = 0;
  virtual privacy::Charge Cost() const = 0;
  // Sets rows_ from the sums and forgets them.
  virtual void Release(noise::NoiseSource& noise) = 0;
  virtual void SaveBody(ByteWriter* bytes) const = 0;
  // Returns false, and changes nothing, when the bytes are no body.
  virtual bool LoadBody(ByteReader* bytes) = 0;

  const RowSpace& space_;
  const VocabularyOptions options_;
  const uint64_t keep_;
  std::vector<uint64_t> rows_;

 private:
  bool Releases() const { return options_.source == Source::kRunning || releases_ == 0; }

  uint64_t releases_ = 0;
};

std::string ReleasedVocabulary::SaveState() const {
  if (releases_ == 0) return {};
  ByteWriter bytes;
  bytes.Put(kVocabularyVersion).Put(static_cast<uint8_t>(options_.query));
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
  if (query != static_cast<uint8_t>(options_.query)) return other("query");
  if (source != static_cast<uint8_t>(options_.source)) return other("source");
  if (space != space_.rows() || releases == 0 || !LoadBody(&reader))
    return Fail(ErrorCode::kCorruption, "the stored vocabulary is not one of this configuration");
  releases_ = releases;
  return {};
}

class HistogramVocabulary final : public ReleasedVocabulary {
 public:
  HistogramVocabulary(const RowSpace& space, const VocabularyOptions& options)
      : ReleasedVocabulary(space, options),
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

// Each period's own top rows: keeping rows of earlier periods would be another release.
class GumbelVocabulary final : public ReleasedVocabulary {
 public:
  using ReleasedVocabulary::ReleasedVocabulary;

  std::span<const float> counts() const override { return {}; }

 private:
  double Rho() const { return 0.5 / options_.noise_multiplier / options_.noise_multiplier; }

  void Add(const model::Activations& activations) override {
    sums_.resize(space_.rows());
    for (uint32_t place : activations.unit_row) ++sums_[activations.rows[place]];
  }

  privacy::Charge Cost() const override {
    return {.mechanism = privacy::MechanismKind::kVocabulary,
            .noise_multiplier = std::numeric_limits<double>::infinity(),
            .zcdp_rho = Rho()};
  }

  void Release(noise::NoiseSource& noise) override {
    std::vector<uint64_t> counted;
    std::vector<double> scores;
    for (uint64_t row = 0; row < sums_.size(); ++row) {
      if (sums_[row] == 0) continue;
      counted.push_back(row);
      scores.push_back(static_cast<double>(sums_[row]));
    }
    sums_ = {};
    std::vector<uint8_t> kept;
    GumbelTop().Choose(counted, scores, space_.rows(), keep_, 1 / GumbelTop::Epsilon(keep_, Rho()),
                       noise, &kept, &rows_);
    const auto others = static_cast<ptrdiff_t>(rows_.size());
    for (size_t i = 0; i < counted.size(); ++i)
      if (kept[i]) rows_.push_back(counted[i]);
    std::inplace_merge(rows_.begin(), rows_.begin() + others, rows_.end());
  }

  void SaveBody(ByteWriter* bytes) const override {
    for (uint64_t row : rows_) bytes->Put(static_cast<uint32_t>(row));
  }
  bool LoadBody(ByteReader* bytes) override {
    if (bytes->remaining() != keep_ * sizeof(uint32_t)) return false;
    std::vector<uint64_t> rows(keep_);
    for (uint64_t& row : rows) row = bytes->Get<uint32_t>();
    if (rows.back() >= space_.rows() ||
        std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())
      return false;
    rows_ = std::move(rows);
    return true;
  }

  std::vector<uint32_t> sums_;  // of the period being shown; empty between periods
};

}  // namespace

std::unique_ptr<Vocabulary> MakeVocabulary(const RowSpace& space, VocabularyOptions options) {
  if (options.source == Source::kPublic) {
    TACIT_CHECK(options.keep == 0 || options.keep == options.rows.size(),
                "of public rows all are kept");
    return std::make_unique<PublicVocabulary>(space, std::move(options.rows));
  }
  if (options.query == Query::kGaussian)
    return std::make_unique<HistogramVocabulary>(space, options);
  return std::make_unique<GumbelVocabulary>(space, options);
}

}  // namespace tacit::mechanism
