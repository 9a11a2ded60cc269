#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <span>
#include <vector>

#include "model/sequence/layout.h"
#include "model/sequence/sequence_model.h"
#include "model/sequence/unit_rows.h"
#include "tape.h"

// The sequence model as float64 loops over whole windows, padding included and masked, whose
// gradients come from a tape: nothing is shared with the model but the layout of its parameters.
namespace tacit::model::testing {

using Row = std::vector<Var>;
using Rows = std::vector<Row>;

// A unit as a user of the library would write it down: windows with padding anywhere.
struct PaddedUnit {
  struct Crop {
    std::vector<uint32_t> inputs, targets;
  };
  uint64_t id = 0;
  std::vector<Crop> crops;

  UnitRows ToRows(const SequenceOptions& options) const {
    UnitRows rows;
    for (const Crop& crop : crops) rows.Append(crop.inputs, crop.targets, options.length);
    rows.Weigh(options);
    return rows;
  }
};

struct OracleUnit {
  double loss = 0;
  std::vector<double> gradient;  // laid out as the parameters
  // The items of all positions that are no padding, for the identity of phantom clipping.
  std::vector<uint32_t> item;
  std::vector<std::vector<double>> input_grad;  // of the embedding as it was read
  std::vector<std::vector<double>> hidden, logit_grad;
};

class SequenceOracle {
 public:
  struct Context {
    std::vector<uint32_t> negatives = {};
    // The factors of dropout at a site, row by row of the unit; none: nothing is dropped.
    std::function<double(uint32_t site, size_t row, size_t column)> dropped = {};
    double weight_variance = 0;
    size_t carrier_rank = 0;                 // of the carriers by which matrices were noised
    std::vector<double> item_variance = {};  // if empty, attention is not corrected
    // Known logits: of each item (rows) those of what follows, decayed by age. Empty if none.
    std::vector<std::vector<double>> known = {};
    double known_decay = 0;
    bool padding_counts = false;  // a planted fault
  };

  SequenceOracle(const SequenceLayout& layout, std::span<const float> parameters, Context context)
      : layout_(layout), context_(std::move(context)) {
    for (const float p : parameters) values_.push_back(p);
  }
  // Moves one parameter, for finite differences.
  void Nudge(size_t at, double by) { values_[at] += by; }

  OracleUnit Run(const PaddedUnit& unit) {
    Tape tape;
    p_.clear();
    for (const double v : values_) p_.push_back(tape.Leaf(v));
    row_ = 0;
    OracleUnit out;
    Rows embeddings, hidden, logits;
    size_t counted = 0;
    for (const auto& crop : unit.crops)
      for (size_t i = 0; i < crop.inputs.size(); ++i) counted += Counts(crop, i);
    Var loss = tape.Leaf(0);
    for (const auto& crop : unit.crops)
      loss = loss + CropLoss(tape, crop, counted, &out, &embeddings, &hidden, &logits);
    out.loss = loss.value();
    const auto gradient = tape.Gradient(loss);
    const auto of = [&](const Row& row, bool values) {
      std::vector<double> numbers;
      for (const Var v : row) numbers.push_back(values ? v.value() : gradient[v.id]);
      return numbers;
    };
    for (const Var v : p_) out.gradient.push_back(gradient[v.id]);
    for (size_t r = 0; r < hidden.size(); ++r) {
      out.input_grad.push_back(of(embeddings[r], false));
      out.hidden.push_back(of(hidden[r], true));
      out.logit_grad.push_back(of(logits[r], false));
    }
    return out;
  }

 private:
  const SequenceOptions& options() const { return layout_.options(); }
  Row Param(size_t offset, size_t n) const {
    return {p_.begin() + offset, p_.begin() + offset + n};
  }
  Row ItemRow(const ParameterTable& table, uint32_t row) const {
    return Param(table.offset + row * table.cols, table.cols);
  }

  bool Counts(const PaddedUnit::Crop& crop, size_t i) const {
    if (crop.inputs[i] == kNoItem || crop.targets[i] == kNoItem) return context_.padding_counts;
    if (!options().last_position_only) return true;
    for (size_t j = i + 1; j < crop.inputs.size(); ++j)
      if (crop.inputs[j] != kNoItem) return false;
    return true;
  }

  Var CropLoss(Tape& tape, const PaddedUnit::Crop& crop, size_t counted, OracleUnit* out,
               Rows* embeddings, Rows* hidden, Rows* logits) {
    const size_t n = crop.inputs.size(), first = options().length - n;
    crop_rows_.clear();
    padding_.clear();
    size_t next = row_;
    Rows x;
    for (size_t i = 0; i < n; ++i) {
      padding_.push_back(crop.inputs[i] == kNoItem);
      crop_rows_.push_back(padding_[i] ? 0 : next++);
      const uint32_t item = padding_[i] ? 0 : crop.inputs[i];
      // A copy, so that the tape knows the embedding as it is read apart from the table.
      Row read = ItemRow(layout_.items(), item);
      for (Var& v : read) v = 1.0 * v;
      if (!padding_[i]) {
        out->item.push_back(item);
        embeddings->push_back(read);
      }
      Row row;
      for (size_t c = 0; c < read.size(); ++c) {
        Var y = double{layout_.embedding_scale()} * read[c];
        if (layout_.positions().rows > 0)
          y = y + ItemRow(layout_.positions(), static_cast<uint32_t>(first + i))[c];
        row.push_back(Dropped(0, i, c) * y);
      }
      x.push_back(row);
    }
    x = Encode(x, crop);
    Var loss = tape.Leaf(0);
    for (size_t i = 0; i < n; ++i) {
      const bool padded = padding_[i];
      if (padded && !context_.padding_counts) continue;
      Row z = Logits(x[i], TargetOf(crop, i));
      AddKnown(crop, i, &z);
      if (Counts(crop, i)) {
        const double weight = options().mean_loss ? 1.0 / static_cast<double>(counted) : 1.0;
        loss = loss + weight * Loss(Possible(z, crop, i), PlaceOf(crop, i));
      }
      if (padded) continue;
      hidden->push_back(x[i]);
      logits->push_back(z);
    }
    row_ = next;
    return loss;
  }

  static uint32_t TargetOf(const PaddedUnit::Crop& crop, size_t i) {
    return crop.targets[i] == kNoItem ? 0 : crop.targets[i];
  }
  void AddKnown(const PaddedUnit::Crop& crop, size_t i, Row* z) const {
    double weight = 1;
    for (size_t j = i + 1; j-- > 0 && !context_.known.empty();) {
      if (crop.inputs[j] == kNoItem) continue;
      for (size_t item = 0; item < z->size(); ++item)
        (*z)[item] = (*z)[item] + weight * context_.known[crop.inputs[j]][item];
      weight *= context_.known_decay;
    }
  }

  // True if the item can come next: always, but with masking only if it was not seen, or does come
  // next.
  bool CanCome(const PaddedUnit::Crop& crop, size_t i, uint32_t item) const {
    if (!options().mask_seen || item == TargetOf(crop, i)) return true;
    for (size_t j = 0; j <= i; ++j)
      if (crop.inputs[j] == item) return false;
    return true;
  }
  Row Possible(const Row& z, const PaddedUnit::Crop& crop, size_t i) const {
    if (!options().mask_seen) return z;
    Row possible;
    for (uint32_t item = 0; item < z.size(); ++item)
      if (CanCome(crop, i, item)) possible.push_back(z[item]);
    return possible;
  }
  // The target's place among those.
  uint32_t PlaceOf(const PaddedUnit::Crop& crop, size_t i) const {
    uint32_t place = 0;
    for (uint32_t item = 0; item < TargetOf(crop, i) && options().negatives == 0; ++item)
      place += CanCome(crop, i, item);
    return place;
  }

  double Dropped(uint32_t site, size_t i, size_t c) const {
    return context_.dropped && !padding_[i] ? context_.dropped(site, crop_rows_[i], c) : 1.0;
  }

  Row Logits(const Row& h, uint32_t target) const {
    Row z;
    const auto logit = [&](uint32_t item) {
      const Row row = ItemRow(layout_.output(), item);
      Var sum = h[0] * row[0];
      for (size_t c = 1; c < h.size(); ++c) sum = sum + h[c] * row[c];
      return options().item_bias ? sum + p_[layout_.item_bias().offset + item] : sum;
    };
    if (context_.negatives.empty()) {
      for (uint32_t item = 0; item < options().catalogue; ++item) z.push_back(logit(item));
      return z;
    }
    // The target first.
    z.push_back(logit(target));
    const double shift =
        std::log((options().catalogue - 1.0) / static_cast<double>(context_.negatives.size()));
    for (const uint32_t item : context_.negatives)
      if (item != target) z.push_back(logit(item) + shift);
    return z;
  }

  Var Loss(const Row& z, uint32_t target) const {
    if (!context_.negatives.empty()) target = 0;
    double most = z[0].value();
    for (const Var v : z) most = std::max(most, v.value());
    Var sum = Exp(z[0] + -most);
    for (size_t j = 1; j < z.size(); ++j) sum = sum + Exp(z[j] + -most);
    const double a = options().label_smoothing;
    Var loss = Log(sum) + most;
    loss = loss - (1 - a) * z[target];
    for (const Var v : z) loss = loss - (a / static_cast<double>(z.size())) * v;
    return loss;
  }

  Row Linear(const Row& in, const LinearLayer& layer) const {
    Row out;
    for (size_t j = 0; j < layer.out; ++j) {
      Var sum = p_[layer.offset + layer.in * layer.out + j];
      for (size_t i = 0; i < layer.in; ++i)
        sum = sum + in[i] * p_[layer.offset + i * layer.out + j];
      out.push_back(sum);
    }
    return out;
  }

  Row Normalise(const Row& x, const NormLayer& layer) const {
    const double n = static_cast<double>(x.size());
    Var mean = (1 / n) * x[0];
    for (size_t c = 1; c < x.size(); ++c) mean = mean + (1 / n) * x[c];
    Var variance = (1 / n) * ((x[0] - mean) * (x[0] - mean));
    for (size_t c = 1; c < x.size(); ++c)
      variance = variance + (1 / n) * ((x[c] - mean) * (x[c] - mean));
    const Var deviation = Sqrt(variance + double{1e-5f});
    Row out;
    for (size_t c = 0; c < x.size(); ++c)
      out.push_back(p_[layer.offset + c] * ((x[c] - mean) / deviation) +
                    p_[layer.offset + layer.width + c]);
    return out;
  }

  // ---- What noise in the parameters does, as numbers beside the tape ----
  using Numbers = std::vector<std::vector<double>>;

  // Carriers noise the dimensions that they span: r of all columns, and of the rest r of all rows.
  double NoisedShare(const LinearLayer& layer) const {
    const auto r = static_cast<double>(context_.carrier_rank), in = static_cast<double>(layer.in),
               out = static_cast<double>(layer.out);
    if (r == 0 || r * (in + out) >= in * out) return 1;
    return r / in + (1 - r / in) * (r / out);
  }
  Numbers LinearNoise(const Rows& mean, const Numbers& v, const LinearLayer& layer) const {
    Numbers out;
    const double s = context_.weight_variance * NoisedShare(layer);
    for (size_t r = 0; r < v.size(); ++r) {
      out.emplace_back(layer.out);
      for (size_t j = 0; j < layer.out; ++j) {
        out[r][j] = context_.weight_variance;
        for (size_t i = 0; i < layer.in; ++i) {
          const double w = values_[layer.offset + i * layer.out + j], m = mean[r][i].value();
          out[r][j] += v[r][i] * s + v[r][i] * w * w + s * m * m;
        }
      }
    }
    return out;
  }
  void NormNoise(const Rows& before, const NormLayer& layer, Numbers* v) const {
    for (size_t r = 0; r < v->size(); ++r) {
      const double n = static_cast<double>(layer.width);
      double mean = 0, variance = 0, noise = 0;
      for (size_t c = 0; c < layer.width; ++c) mean += before[r][c].value() / n;
      for (size_t c = 0; c < layer.width; ++c) {
        variance += std::pow(before[r][c].value() - mean, 2) / n;
        noise += (*v)[r][c] / n;
      }
      for (size_t c = 0; c < layer.width; ++c)
        (*v)[r][c] *= std::pow(values_[layer.offset + c], 2) / (variance + noise + double{1e-5f});
    }
  }
  static double ReluNoise(double m, double v) {
    const double z = m / std::sqrt(v), below = std::erfc(-z / std::numbers::sqrt2) / 2,
                 density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double mean = m * below + std::sqrt(v) * density;
    return (m * m + v) * below + m * std::sqrt(v) * density - mean * mean;
  }

  Rows Attend(const Rows& qkv, const Numbers* noise, Numbers* out_noise) const {
    const size_t width = options().width, heads = options().heads, head = width / heads;
    Rows out(qkv.size(), Row(width));
    if (out_noise != nullptr) out_noise->assign(qkv.size(), std::vector<double>(width));
    for (size_t h = 0; h < heads; ++h) {
      for (size_t i = 0; i < qkv.size(); ++i) {
        Row logits;
        std::vector<size_t> seen;
        for (size_t j = 0; j <= i; ++j) {
          if (padding_[j] && !padding_[i]) continue;  // padding sees itself, so that it has values
          Var dot = qkv[i][h * head] * qkv[j][width + h * head];
          double uncertain = 0;
          for (size_t c = 1; c < head; ++c)
            dot = dot + qkv[i][h * head + c] * qkv[j][width + h * head + c];
          for (size_t c = 0; noise != nullptr && c < head; ++c)
            uncertain +=
                std::pow(qkv[i][h * head + c].value(), 2) * (*noise)[j][width + h * head + c];
          const double correction = options().re_attention.kappa / (2.0 * head) * uncertain;
          logits.push_back((1 / std::sqrt(static_cast<double>(head))) * dot +
                           -std::min<double>(correction, options().re_attention.most));
          seen.push_back(j);
        }
        Var sum = Exp(logits[0]);
        for (size_t j = 1; j < logits.size(); ++j) sum = sum + Exp(logits[j]);
        for (size_t c = 0; c < head; ++c) {
          Var value = Exp(logits[0]) / sum * qkv[seen[0]][2 * width + h * head + c];
          for (size_t j = 1; j < logits.size(); ++j)
            value = value + Exp(logits[j]) / sum * qkv[seen[j]][2 * width + h * head + c];
          out[i][h * head + c] = value;
          for (size_t j = 0; out_noise != nullptr && j < logits.size(); ++j)
            (*out_noise)[i][h * head + c] +=
                std::pow(std::exp(logits[j].value()) / sum.value(), 2) *
                (*noise)[seen[j]][2 * width + h * head + c];
        }
      }
    }
    return out;
  }

  // Padding is stepped over: the state after it is the state before it.
  Rows Recur(Rows x) const {
    const bool gru = options().encoder == SequenceOptions::Encoder::kGru;
    const size_t width = options().width;
    for (size_t l = 0; l < layout_.recurrent().size(); ++l) {
      const SequenceLayout::Recurrent& layer = layout_.recurrent()[l];
      Row state(width, x[0][0].tape->Leaf(0)), cell = state;
      for (size_t i = 0; i < x.size(); ++i) {
        if (padding_[i]) continue;
        const Row a = Linear(x[i], layer.input), u = Linear(state, layer.recurrent);
        for (size_t c = 0; c < width; ++c) {
          const auto sum = [&](size_t gate) { return a[gate * width + c] + u[gate * width + c]; };
          if (gru) {
            const Var r = Sigmoid(sum(0)), z = Sigmoid(sum(1));
            const Var n = Tanh(a[2 * width + c] + r * u[2 * width + c]);
            state[c] = n - z * n + z * state[c];
          } else {
            cell[c] = Sigmoid(sum(1)) * cell[c] + Sigmoid(sum(0)) * Tanh(sum(2));
            state[c] = Sigmoid(sum(3)) * Tanh(cell[c]);
          }
        }
        for (size_t c = 0; c < width; ++c)
          x[i][c] = Dropped(static_cast<uint32_t>(1 + l), i, c) * state[c];
      }
    }
    return x;
  }

  Rows Encode(Rows x, const PaddedUnit::Crop& crop) const {
    if (!layout_.recurrent().empty()) return Recur(std::move(x));
    const bool pre = options().norm == SequenceOptions::Norm::kPre;
    const bool noisy = !context_.item_variance.empty();
    Numbers v;
    for (size_t i = 0; noisy && i < x.size(); ++i) {
      const double item = context_.item_variance[padding_[i] ? 0 : crop.inputs[i]];
      v.emplace_back();
      for (size_t c = 0; c < options().width; ++c)
        v[i].push_back(std::pow(Dropped(0, i, c), 2) *
                       (std::pow(layout_.embedding_scale(), 2) * item + context_.weight_variance));
    }
    const auto each = [](const Rows& rows, const auto& f) {
      Rows out;
      for (const Row& row : rows) out.push_back(f(row));
      return out;
    };
    // x + branch, the branch dropped at a site; its noise beside it.
    const auto add = [&](Rows* to, const Rows& branch, uint32_t site, Numbers* noise,
                         const Numbers& branch_noise) {
      for (size_t r = 0; r < to->size(); ++r)
        for (size_t c = 0; c < branch[r].size(); ++c) {
          (*to)[r][c] = (*to)[r][c] + Dropped(site, r, c) * branch[r][c];
          if (noisy) (*noise)[r][c] += std::pow(Dropped(site, r, c), 2) * branch_noise[r][c];
        }
    };
    for (size_t b = 0; b < layout_.blocks().size(); ++b) {
      const SequenceLayout::Block& block = layout_.blocks()[b];
      const auto norm = [&](const NormLayer& layer) {
        return [&](const Row& row) { return Normalise(row, layer); };
      };
      const auto linear = [&](const LinearLayer& layer) {
        return [&](const Row& row) { return Linear(row, layer); };
      };
      Rows in = pre ? each(x, norm(block.first)) : x;
      Numbers in_noise = v;
      if (noisy && pre) NormNoise(x, block.first, &in_noise);
      const Rows qkv = each(in, linear(block.qkv));
      const Numbers qkv_noise = noisy ? LinearNoise(in, in_noise, block.qkv) : Numbers();
      Numbers attended_noise;
      const Rows attended =
          Attend(qkv, noisy ? &qkv_noise : nullptr, noisy ? &attended_noise : nullptr);
      add(&x, each(attended, linear(block.projection)), static_cast<uint32_t>(1 + 2 * b), &v,
          noisy ? LinearNoise(attended, attended_noise, block.projection) : Numbers());
      if (!pre) {
        if (noisy) NormNoise(x, block.first, &v);
        x = each(x, norm(block.first));
      }
      in = pre ? each(x, norm(block.second)) : x;
      in_noise = v;
      if (noisy && pre) NormNoise(x, block.second, &in_noise);
      const Rows before = each(in, linear(block.inner));
      Numbers inner_noise = noisy ? LinearNoise(in, in_noise, block.inner) : Numbers();
      for (size_t r = 0; r < inner_noise.size(); ++r)
        for (size_t c = 0; c < inner_noise[r].size(); ++c)
          inner_noise[r][c] = ReluNoise(before[r][c].value(), inner_noise[r][c]);
      const Rows inner = each(before, [](Row row) {
        for (Var& y : row) y = Relu(y);
        return row;
      });
      add(&x, each(inner, linear(block.outer)), static_cast<uint32_t>(2 + 2 * b), &v,
          noisy ? LinearNoise(inner, inner_noise, block.outer) : Numbers());
      if (!pre) {
        if (noisy) NormNoise(x, block.second, &v);
        x = each(x, norm(block.second));
      }
    }
    if (layout_.last_norm().width > 0)
      x = each(x, [&](const Row& row) { return Normalise(row, layout_.last_norm()); });
    return x;
  }

  const SequenceLayout& layout_;
  const Context context_;
  std::vector<double> values_;
  std::vector<Var> p_;
  std::vector<bool> padding_;      // of the crop under way
  std::vector<size_t> crop_rows_;  // per place: its row in the unit, padding left out
  size_t row_ = 0;
};

// Units as they were written down.
class PaddedUnits final : public SequenceUnits {
 public:
  // `coins_by_place`: a planted fault.
  PaddedUnits(const SequenceOptions& options, const std::vector<PaddedUnit>& units,
              bool coins_by_place = false)
      : options_(options), units_(units), coins_by_place_(coins_by_place) {}
  size_t units() const override { return units_.size(); }
  uint64_t Id(size_t unit) const override { return coins_by_place_ ? unit : units_[unit].id; }
  size_t Cost(size_t unit) const override { return units_[unit].crops.size() + 1; }
  void Rows(size_t unit, uint64_t, UnitRows* rows) const override {
    *rows = units_[unit].ToRows(options_);
  }

 private:
  const SequenceOptions& options_;
  const std::vector<PaddedUnit>& units_;
  const bool coins_by_place_;
};

// Random units: repeats are likely; padding in front, within and after; a crop of one position; a
// unit without any target; several crops.
inline std::vector<PaddedUnit> RandomUnits(const SequenceOptions& options, size_t count,
                                           uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PaddedUnit> units;
  for (size_t u = 0; u < count; ++u) {
    PaddedUnit unit{.id = 1000 + 7 * u, .crops = {}};
    const size_t crops = u % 5 == 4 ? 0 : 1 + random() % options.crops;
    for (size_t k = 0; k < crops; ++k) {
      PaddedUnit::Crop crop;
      const size_t n = u % 4 == 1 ? 1 : 1 + random() % options.length;
      for (size_t i = 0; i < n; ++i) {
        const bool padded = n > 1 && random() % 4 == 0;
        crop.inputs.push_back(padded ? kNoItem
                                     : static_cast<uint32_t>(random() % options.catalogue));
        crop.targets.push_back(padded || random() % 8 == 0
                                   ? kNoItem
                                   : static_cast<uint32_t>(random() % options.catalogue));
      }
      unit.crops.push_back(std::move(crop));
    }
    units.push_back(std::move(unit));
  }
  return units;
}

// Parameters of every kind away from their simple initial values.
inline std::vector<float> RandomParameters(const SequenceLayout& layout, uint64_t seed) {
  std::vector<float> parameters = layout.Initial(seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (float& p : parameters) p += 0.2f * normal(random);
  return parameters;
}

}  // namespace tacit::model::testing
