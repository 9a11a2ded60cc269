#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "base/row_space.h"
#include "model/examples.h"
#include "model/pctr.h"

// The oracle of the click model: loops over single examples in float64, nothing shared with the
// code under test. Every unit's gradient is materialised.
namespace tacit::model::testing {

struct LoopGradient {
  std::vector<double> dense;
  std::map<uint64_t, std::vector<double>> rows;

  void Add(const LoopGradient& other, double scale = 1) {
    dense.resize(std::max(dense.size(), other.dense.size()));
    for (size_t i = 0; i < other.dense.size(); ++i) dense[i] += scale * other.dense[i];
    for (const auto& [row, values] : other.rows) {
      auto& sum = rows[row];
      sum.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[i] += scale * values[i];
    }
  }
};

struct LoopModel {
  RowSpace space;
  uint32_t dense_width = 0;
  std::vector<uint32_t> hidden;

  std::vector<size_t> Widths() const {
    size_t in = dense_width;
    for (const auto& table : space.tables()) in += table.dim;
    std::vector<size_t> widths = {in};
    widths.insert(widths.end(), hidden.begin(), hidden.end());
    widths.push_back(1);
    return widths;
  }
  size_t DenseSize() const {
    const auto w = Widths();
    size_t size = 0;
    for (size_t l = 0; l + 1 < w.size(); ++l) size += (w[l] + 1) * w[l + 1];
    return size;
  }
};

// One example with its rows by id.
struct LoopExample {
  std::vector<double> dense;
  std::vector<std::vector<uint64_t>> slots;
  double label = 0;
  double weight = 1;
};

using Rows = std::map<uint64_t, std::vector<double>>;

// activations[0] is the input, activations[l + 1] layer l's output after its ReLU; the last the
// logit.
inline std::vector<std::vector<double>> LoopForward(const LoopModel& model, const LoopExample& x,
                                                    const std::vector<double>& dense,
                                                    const Rows& rows) {
  std::vector<double> input;
  for (size_t s = 0; s < x.slots.size(); ++s) {
    std::vector<double> sum(model.space.tables()[s].dim);
    for (uint64_t row : x.slots[s])
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += rows.at(row)[c];
    input.insert(input.end(), sum.begin(), sum.end());
  }
  input.insert(input.end(), x.dense.begin(), x.dense.end());
  std::vector<std::vector<double>> activations = {input};
  const auto widths = model.Widths();
  size_t at = 0;
  for (size_t l = 0; l + 1 < widths.size(); ++l) {
    const size_t in = widths[l], out = widths[l + 1];
    std::vector<double> y(out);
    for (size_t j = 0; j < out; ++j) {
      y[j] = dense[at + in * out + j];
      for (size_t i = 0; i < in; ++i) y[j] += activations[l][i] * dense[at + i * out + j];
      if (l + 2 < widths.size()) y[j] = std::max(y[j], 0.0);
    }
    activations.push_back(y);
    at += (in + 1) * out;
  }
  return activations;
}

inline double LoopLoss(double logit, double label) {
  return std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - label * logit;
}

inline LoopGradient LoopBackward(const LoopModel& model, const LoopExample& x,
                                 const std::vector<double>& dense, const Rows& rows) {
  const auto activations = LoopForward(model, x, dense, rows);
  const auto widths = model.Widths();
  LoopGradient gradient;
  gradient.dense.resize(dense.size());
  std::vector<double> g = {x.weight * (1 / (1 + std::exp(-activations.back()[0])) - x.label)};
  size_t end = dense.size();
  for (size_t l = widths.size() - 1; l-- > 0;) {
    const size_t in = widths[l], out = widths[l + 1], at = end - (in + 1) * out;
    std::vector<double> below(in);
    for (size_t j = 0; j < out; ++j) {
      gradient.dense[at + in * out + j] = g[j];
      for (size_t i = 0; i < in; ++i) {
        gradient.dense[at + i * out + j] = activations[l][i] * g[j];
        below[i] += dense[at + i * out + j] * g[j];
      }
    }
    for (size_t i = 0; l > 0 && i < in; ++i)
      if (activations[l][i] <= 0) below[i] = 0;
    g = below;
    end = at;
  }
  size_t column = 0;
  for (size_t s = 0; s < x.slots.size(); ++s) {
    const size_t dim = model.space.tables()[s].dim;
    for (uint64_t row : x.slots[s]) {
      auto& sum = gradient.rows[row];
      sum.resize(dim);
      for (size_t c = 0; c < dim; ++c) sum[c] += g[column + c];
    }
    column += dim;
  }
  return gradient;
}

// A random step: parameters and examples in the form of the model under test, and the same for the
// loops. Multi-hot slots with repeats, empty slots, units of zero to several examples.
struct Problem {
  struct Options {
    size_t examples = 24;
    bool one_example_per_unit = false;
    bool weights = false;  // of examples, some of them 0
    std::vector<uint32_t> hidden = {9, 6};
    float spread = 1;  // of parameters
  };

  LoopModel model;
  std::vector<float> dense_parameters;
  std::vector<std::vector<float>> row_values;  // per row of the space
  std::vector<uint32_t> unit_of, slot_end;
  std::vector<float> label, dense, weight;
  std::vector<uint64_t> row;
  size_t units = 0;
  Activations activations;
  std::vector<float*> rows;  // as Pctr::Forward wants them

  Problem(uint64_t seed, const Options& options) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    model.space.AddTable("a", 7, 3);
    model.space.AddTable("b", 5, 2);
    model.space.AddTable("c", 11, 17);
    model.dense_width = 4;
    model.hidden = options.hidden;
    dense_parameters.resize(model.DenseSize());
    for (float& x : dense_parameters) x = options.spread * 0.5f * normal(random);
    for (uint64_t r = 0; r < model.space.rows(); ++r) {
      row_values.emplace_back(model.space.tables()[model.space.TableOf(r)].dim);
      for (float& x : row_values.back()) x = options.spread * normal(random);
    }
    for (size_t i = 0; i < options.examples; ++i) AddExample(random, options);
    units = unit_of.empty() ? 0 : unit_of.back() + 1;
    if (!options.one_example_per_unit && units > 0) ++units;  // the last has no example
    Index();
  }

  void Index() {
    ActivationIndexer().Index(row, slot_end, model.space.tables().size(), unit_of, units,
                              &activations);
    rows.clear();
    for (uint64_t r : activations.rows) rows.push_back(row_values[r].data());
  }

  Examples View() const {
    return {label.size(), units, unit_of, label, dense, slot_end, activations.slot_row, weight};
  }
  PctrOptions ModelOptions(ops::Precision precision = ops::Precision::kF32) const {
    return {model.space, model.dense_width, model.hidden, precision};
  }

  std::vector<double> Dense() const { return {dense_parameters.begin(), dense_parameters.end()}; }
  Rows RowMap() const {
    Rows map;
    for (uint64_t r = 0; r < row_values.size(); ++r)
      map[r] = {row_values[r].begin(), row_values[r].end()};
    return map;
  }
  LoopExample Example(size_t i) const {
    LoopExample x;
    x.dense.assign(dense.begin() + i * model.dense_width,
                   dense.begin() + (i + 1) * model.dense_width);
    const size_t slots = model.space.tables().size();
    for (size_t s = 0; s < slots; ++s) {
      const size_t cell = i * slots + s;
      x.slots.emplace_back(row.begin() + (cell == 0 ? 0 : slot_end[cell - 1]),
                           row.begin() + slot_end[cell]);
    }
    x.label = label[i];
    if (!weight.empty()) x.weight = weight[i];
    return x;
  }
  std::vector<LoopGradient> UnitGradients() const {
    std::vector<LoopGradient> gradients(units);
    for (LoopGradient& g : gradients) g.dense.resize(dense_parameters.size());
    for (size_t i = 0; i < label.size(); ++i)
      gradients[unit_of[i]].Add(LoopBackward(model, Example(i), Dense(), RowMap()));
    return gradients;
  }

 private:
  void AddExample(std::mt19937_64& random, const Options& options) {
    std::normal_distribution<float> normal;
    // Now and then a unit is skipped: it has no examples.
    const uint32_t step = options.one_example_per_unit ? 1 : random() % 5 < 2 ? random() % 3 : 0;
    unit_of.push_back(unit_of.empty() ? 0 : unit_of.back() + step);
    label.push_back(random() % 2);
    if (options.weights) weight.push_back(static_cast<float>(random() % 5) / 4);
    for (uint32_t d = 0; d < model.dense_width; ++d) dense.push_back(normal(random));
    for (const auto& table : model.space.tables()) {
      const size_t hot = random() % 4;  // repeats are likely in the small tables
      for (size_t k = 0; k < hot; ++k) row.push_back(table.first + random() % table.rows);
      slot_end.push_back(static_cast<uint32_t>(row.size()));
    }
  }
};

inline double SquaredLength(std::span<const double> x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return sum;
}

}  // namespace tacit::model::testing
