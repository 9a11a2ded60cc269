#include "mechanism/choice/gumbel_top.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {
namespace {

// Draws a uniform integer below n from 53 bits: no integer is likelier than another by more than n
// / 2^53 of its chance.
uint64_t UniformBelow(uint64_t n, noise::NoiseSource& noise) {
  const auto drawn = static_cast<uint64_t>(noise.Uniform() * static_cast<double>(n));
  return std::min(drawn, n - 1);
}

// Draws `count` different integers below n, ascending, every such set equally likely (Floyd's
// method).
void ChooseBelow(uint64_t n, uint64_t count, noise::NoiseSource& noise,
                 std::unordered_set<uint64_t>* chosen, std::vector<uint64_t>* out) {
  chosen->clear();
  out->clear();
  for (uint64_t top = n - count; top < n; ++top) {
    const uint64_t drawn = UniformBelow(top + 1, noise);
    out->push_back(chosen->insert(drawn).second ? drawn : *chosen->insert(top).first);
  }
  std::sort(out->begin(), out->end());
}

// Turns ranks among the rows that are not listed into those rows.
void SkipListed(std::span<const uint64_t> listed, std::span<uint64_t> ranks) {
  size_t before = 0;  // listed rows below the row looked for
  for (uint64_t& rank : ranks) {
    while (before < listed.size() && listed[before] <= rank + before) ++before;
    rank += before;
  }
}

}  // namespace

double DrawGumbel(noise::NoiseSource& noise) { return -std::log(-std::log(noise.Uniform())); }

void GumbelTop::Choose(std::span<const uint64_t> rows, std::span<const double> scores,
                       uint64_t space, uint64_t k, double scale, noise::NoiseSource& noise,
                       std::vector<uint8_t>* kept, std::vector<uint64_t>* others) {
  TACIT_CHECK(rows.size() == scores.size() && rows.size() <= space && space < uint64_t{1} << 53);
  TACIT_CHECK(k > 0 && scale > 0 && std::isfinite(scale), "a top-k needs a k and noise");
  candidates_.clear();
  for (size_t i = 0; i < rows.size(); ++i)
    candidates_.push_back({scores[i] + scale * DrawGumbel(noise), static_cast<uint32_t>(i)});
  const auto larger = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
  const size_t most = std::min<uint64_t>(k, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(most),
                    candidates_.end(), larger);

  kept->assign(rows.size(), 0);
  const uint64_t unlisted = space - rows.size();
  uint64_t taken = 0;      // rows taken that score 0
  double exponential = 0;  // the next of their order statistics, as an exponential
  bool drawn = false;      // whether `exponential` holds it
  size_t listed = 0;       // candidates taken
  while (listed + taken < std::min(k, space)) {
    if (!drawn && taken < unlisted) {
      exponential -= std::log(noise.Uniform()) / static_cast<double>(unlisted - taken);
      drawn = true;
    }
    const bool other = drawn && (listed == candidates_.size() ||
                                 -scale * std::log(exponential) > candidates_[listed].score);
    if (other) {
      ++taken;
      drawn = false;
    } else {
      (*kept)[candidates_[listed++].place] = 1;
    }
  }
  others->clear();
  if (taken > 0) ChooseBelow(unlisted, taken, noise, &ranks_, others);
  SkipListed(rows, *others);
  // Wipes the candidates: they are one step's private data.
  std::fill(candidates_.begin(), candidates_.end(), Candidate{});
}

}  // namespace tacit::mechanism
