#pragma once

#include <cstdint>
#include <span>

// One pass over examples' values. A value is named by its place in a list of parameters, so that
// the same pass serves a step's distinct rows and a table held whole.
namespace tacit::model::linear {

// The values of some examples as places. A set of m values counts as one column: each of them has
// the input 1 / sqrt(m), so that the column's inputs are a vector of norm 1. Views.
struct Places {
  size_t columns = 0;
  std::span<const uint32_t> place;
  std::span<const uint32_t> end;  // examples x columns: end in `place` of each run
  bool one_each = false;          // every run is of one value

  size_t examples() const { return columns == 0 ? 0 : end.size() / columns; }
  size_t Begin(size_t run) const { return run == 0 ? 0 : end[run - 1]; }
  // The places of an example's values.
  std::span<const uint32_t> Of(size_t example) const {
    const size_t begin = Begin(example * columns);
    return place.subspan(begin, end[(example + 1) * columns - 1] - begin);
  }
};

// The parameters of a value that an event meets: its weight, and how far the last release moved it.
struct Effect {
  float weight = 0, move = 0;

  Effect& operator+=(const Effect& other) {
    weight += other.weight;
    move += other.move;
    return *this;
  }
  friend Effect operator+(Effect a, const Effect& b) { return a += b; }
  friend Effect operator*(const Effect& a, float x) { return {a.weight * x, a.move * x}; }
};

// The input of each of the values of a run of m.
double InputOf(size_t m);

// out[i - begin] = sum over the columns of example i of the run's inputs times `weight`, for the
// examples [begin, end). An example's sum does not depend on the others to the last bit. No
// allocation. REQUIRES places below weight.size().
void AddUp(const Places& places, size_t begin, size_t end, std::span<const float> weight,
           std::span<float> out);
// The same of both parameters of each value at once; to the last bit what AddUp makes of either.
void AddUp(const Places& places, size_t begin, size_t end, std::span<const Effect> effect,
           std::span<Effect> out);

}  // namespace tacit::model::linear
