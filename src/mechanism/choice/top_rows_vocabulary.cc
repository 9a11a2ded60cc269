// `kept` of the state (../vocabulary.cc), in the notation of base/bytes.h:
//     kept := row:u32*keep                 the rows kept, ascending
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "mechanism/choice/choice.h"
#include "mechanism/choice/gumbel_top.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

constexpr uint8_t kTopRowsQuery = 1;

// Each period's own top rows: keeping rows of earlier periods would be another release.
class TopRowsVocabulary final : public ReleasedVocabulary {
 public:
  TopRowsVocabulary(const RowSpace& space, const VocabularyOptions& options)
      : ReleasedVocabulary(space, options, kTopRowsQuery) {}

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
    const noise::Declaration declared(noise, {"top rows", 1, scores, counted});
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

std::unique_ptr<Vocabulary> MakeTopRows(const RowSpace& space, const VocabularyOptions& options) {
  return std::make_unique<TopRowsVocabulary>(space, options);
}

}  // namespace tacit::mechanism
