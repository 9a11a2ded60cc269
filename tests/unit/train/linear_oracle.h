#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "model/linear/columns.h"
#include "stream/steps/participation.h"

// Made events, and the linear model as its formulas have it.
namespace tacit::train {

// Two categories, a set of up to twenty values, and two numbers. Crossed: of both categories, and
// of a number and a category.
inline std::shared_ptr<const model::linear::Columns> SomeColumns(bool crossed = false) {
  std::vector<model::linear::CrossColumn> crosses = {{"c*d", 0, 2}, {"m*c", 4, 0}};
  if (!crossed) crosses.clear();
  return std::make_shared<const model::linear::Columns>(model::linear::Columns(
      {{.name = "c", .rows = 30}, {.name = "s", .rows = 60, .set = true}, {.name = "d", .rows = 8}},
      {{.name = "n"}, {.name = "m"}}, model::linear::Bins(), crosses));
}

struct Event {
  uint64_t c = 0, d = 0;
  std::set<uint64_t> s;
  float n = 0, m = 0, label = 0, weight = 1;
};

inline Event RandomEvent(std::mt19937_64& random) {
  Event event;
  event.c = random() % (random() % 30 + 1);
  for (uint64_t i = random() % 20 + 1; i > 0; --i) event.s.insert(random() % 60);
  event.d = random() % 8;
  event.n = random() % 4 == 0 ? -0.0f : static_cast<float>(random() % 1000) / 100;
  event.m = static_cast<float>(random() % 1000) / 100 - 5;
  const double logit = (event.c % 3) - 1.0 + 0.3 * static_cast<double>(event.d % 4) - 0.1 * event.m;
  event.label = (random() % 10'000) / 1e4 < 1 / (1 + std::exp(-logit)) ? 1 : 0;
  return event;
}
inline std::vector<Event> RandomEvents(size_t n, std::mt19937_64& random) {
  std::vector<Event> events;
  for (size_t i = 0; i < n; ++i) events.push_back(RandomEvent(random));
  return events;
}

// Units are runs of `unit_size` events.
inline stream::StepBatch StepOf(const std::vector<Event>& events, size_t unit_size = 1) {
  stream::StepBatch step;
  event::Batch& batch = step.examples;
  batch.dense_width = 2;
  batch.slots = 3;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    batch.label.push_back(event.label);
    batch.weight.push_back(event.weight);
    batch.dense.insert(batch.dense.end(), {event.n, event.m});
    batch.row.push_back(event.c);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    for (const uint64_t value : event.s) batch.row.push_back(30 + value);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    batch.row.push_back(90 + event.d);
    batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    step.unit_of.push_back(static_cast<uint32_t>(i / unit_size));
    step.units = step.unit_of.back() + 1;
  }
  // Streams without weights have no column of them.
  if (std::ranges::all_of(batch.weight, [](float w) { return w == 1; })) batch.weight.clear();
  return step;
}

// The model in double over whole tables, one event after the other, from the formulas.
struct Oracle {
  explicit Oracle(double sigma, bool crossed = false, bool opens = false)
      : crossed(crossed), opens(opens), sigma_(sigma) {
    const auto columns = SomeColumns(crossed);
    J = columns->size();
    double squares = 0;
    for (const RowSpace::Table& table : columns->space().tables()) {
      first.push_back(table.first);
      a.push_back(std::pow(static_cast<double>(table.rows), 0.05));
      squares += a.back() * a.back();
    }
    for (double& scale : a) scale *= std::sqrt(J / squares);
    first.push_back(columns->space().rows());
    for (auto* numbers : {&w, &P, &dw, &E}) numbers->resize(first.back());
    last.resize(first.back());
    C = std::sqrt((alpha * alpha + rho * rho) * J + J * beta * beta * rho * rho + 2 * beta * beta);
  }

  // The event's values with their inputs, per column.
  std::vector<std::map<uint64_t, double>> Values(const Event& e) const {
    const model::linear::Bins bins;
    std::vector<std::map<uint64_t, double>> values(crossed ? 7 : 5);
    values[0][e.c] = 1;
    for (const uint64_t v : e.s) values[1][30 + v] = 1 / std::sqrt(double(e.s.size()));
    values[2][90 + e.d] = 1;
    values[3][98 + bins.Of(e.n)] = 1;
    values[4][98 + bins.values() + bins.Of(e.m)] = 1;
    if (!crossed) return values;
    values[5][98 + 2 * bins.values() + e.c * 8 + e.d] = 1;
    values[6][98 + 2 * bins.values() + 30 * 8 + bins.Of(e.m) * 30 + e.c] = 1;
    return values;
  }
  double Logit(const Event& e) const {
    double z = bias;
    for (const auto& column : Values(e))
      for (const auto& [row, x] : column) z += w[row] * x;
    return z;
  }
  // Returns the event's contribution: sums, counts, then T and Q.
  std::vector<double> Contribution(const Event& e) const {
    std::vector<double> added(2 * w.size() + 3);
    const double p = 1 / (1 + std::exp(-Logit(e)));
    const double r = std::min(std::max((e.label - p) * Factor(p), -rho), rho);
    double d = 0;
    const auto values = Values(e);
    for (size_t j = 0; j < values.size(); ++j)
      for (const auto& [row, x] : values[j]) {
        added[2 * row] += a[j] * r * x;
        added[2 * row + 1] += a[j] * alpha * x * x;
        if (period > 0 && last[row] == period) d += dw[row] * x;
      }
    d = std::min(std::max(d, -1.0), 1.0);
    added[2 * w.size()] = beta * std::sqrt(J) * r * d;
    added[2 * w.size() + 1] = beta * d * d;
    added[2 * w.size() + 2] = e.label > 0.5 ? beta : 0;
    for (double& number : added) number *= e.weight;
    return added;
  }
  void Step(const std::vector<Event>& events) {
    std::vector<double> sums(2 * w.size() + 3);
    for (const Event& e : events) {
      const auto added = Contribution(e);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
    }
    const double T = sums[2 * w.size()] / beta / std::sqrt(J), Q = sums[2 * w.size() + 1] / beta;
    double counted = 0;
    for (uint64_t row = first[2]; row < first[3]; ++row)
      counted += sums[2 * row + 1] / (a[2] * alpha);  // the smallest column
    const double hidden = sigma_ * C / (a[2] * alpha) * std::sqrt(8);
    const double rate = (sums[2 * w.size() + 2] / beta + hidden / 2) / (counted + hidden);
    const double h = Slope(rate), shift = MeanOf(2, sums, h, /*known_only=*/false);
    const bool moved =
        std::ranges::any_of(denominator_, [](const auto& d) { return d.second > 0; });
    if (!moved)
      eta = 0.4 * std::min(1.0, 2.2 / Explained(shift, rate, counted, sums));
    else if (Q >= 2 * sigma_ * C / beta)
      eta = std::min(0.6, eta * std::sqrt(std::clamp(1 + T / (h * Q), 0.3, 1.25)));
    ++period;
    double low = 0.001, high = 0.999;
    while (high - low > 1e-13) {
      const double p = (low + high) / 2;
      (p + shift / Factor(p) < rate ? low : high) = p;
    }
    if (period == 1) {  // all were predicted by the bias
      const double told = std::max(counted, hidden) * rate * (1 - rate);
      const double clicks = sigma_ * C / beta, events = rate * hidden;
      bias =
          std::log(rate / (1 - rate)) / (1 + (clicks * clicks + events * events) / (told * told));
    } else {
      bias += std::log(rate / (1 - rate)) - std::log(low / (1 - low));
    }
    if (period == 1 && opens) return;
    for (size_t j = 0; j < a.size(); ++j)
      StepColumn(j, j == 1 ? MeanOf(1, sums, h, /*known_only=*/true) : shift, rate, sums);
  }

  const bool crossed, opens;
  double J = 0;
  const double alpha = 0.4, rho = 0.7, beta = 0.3, q = 0.1;
  double C = 0, bias = 0, eta = 0;
  std::vector<uint64_t> first;
  std::vector<double> a, w, P, dw, E;
  std::vector<uint64_t> last;
  uint64_t period = 0;

 private:
  bool Known(uint64_t row, const std::vector<double>& sums) const {
    return sums[2 * row + 1] > 2 * sigma_ * C;
  }
  double Factor(double p) const { return std::min(1.0, rho / std::max(p, 1 - p)); }
  double Slope(double rate) const { return 0.857 * rate * (1 - rate) * Factor(rate); }
  double MeanOf(size_t j, const std::vector<double>& sums, double h, bool known_only) const {
    double residual = 0, count = 0, noise = 0;
    for (uint64_t row = first[j]; row < first[j + 1]; ++row) {
      if (known_only && !Known(row, sums)) continue;
      noise += sigma_ * C / a[j] * sigma_ * C / a[j];
      residual += sums[2 * row] / a[j];
      count += sums[2 * row + 1] / (a[j] * alpha);
    }
    return count > 4 * std::sqrt(noise) / alpha
               ? residual / count / (1 + noise / (count * h * count * h))
               : 0;
  }
  // The variance of logits that all columns explain, one by one, with weights at their estimates.
  double Explained(double shift, double rate, double events,
                   const std::vector<double>& sums) const {
    const double h = Slope(rate), v = 0.9 * rate * (1 - rate) * Factor(rate) * Factor(rate);
    double explained = 0;
    for (size_t j = 0; j < a.size(); ++j) {
      const double mean = j == 1 ? MeanOf(1, sums, h, /*known_only=*/true) : shift;
      std::vector<double> o, R, N;
      double top = 0, bottom = 0;
      for (uint64_t row = first[j]; row < first[j + 1]; ++row) {
        if (!Known(row, sums)) continue;
        N.push_back(sums[2 * row + 1] / (a[j] * alpha));
        o.push_back((sums[2 * row] / a[j] / N.back() - mean) / h);
        const double tau = sigma_ * C / a[j], nu = tau / alpha;
        R.push_back((tau * tau + mean * mean * nu * nu + N.back() * v) / std::pow(N.back() * h, 2));
        if (R.back() > 1) continue;
        top += (o.back() * o.back() - R.back()) / std::pow(R.back() + 0.1, 2);
        bottom += 1 / std::pow(R.back() + 0.1, 2);
      }
      const double V = bottom > 0 ? std::clamp(top / bottom, 1e-4, 0.3) : 0.1;
      for (size_t i = 0; i < N.size(); ++i)
        explained += N[i] / events * std::pow(V / (V + R[i]) * o[i], 2);
    }
    return explained;
  }
  void StepColumn(size_t j, double mean, double rate, const std::vector<double>& sums) {
    const double h = Slope(rate), v = 0.9 * rate * (1 - rate) * Factor(rate) * Factor(rate);
    const double tau2 = sigma_ * C / a[j] * sigma_ * C / a[j];
    std::map<uint64_t, std::pair<double, double>> observed;
    for (uint64_t row = first[j]; row < first[j + 1]; ++row) {
      if (!Known(row, sums)) continue;
      const double S = sums[2 * row] / a[j], N = sums[2 * row + 1] / (a[j] * alpha);
      const double o = S / (N * h) - mean / h,
                   R = (tau2 * (1 + mean * mean / (alpha * alpha)) + N * v) / (N * h * N * h);
      observed[row] = {o, R};
      const double trust = R > 1 ? 0 : 1 / ((R + 0.1) * (R + 0.1));
      numerator_[j] += trust * ((w[row] + o) * (w[row] + o) - R);
      denominator_[j] += trust;
    }
    if (observed.empty()) return;
    const double V =
        denominator_[j] > 0 ? std::clamp(numerator_[j] / denominator_[j], 1e-4, 0.3) : 0.1;
    double beyond = 0, trust = 0;
    for (const auto& [row, seen] : observed) {
      if (last[row] == 0) continue;
      const double expected = E[row] + seen.second;
      beyond += (std::min(seen.first * seen.first, 9 * expected) - expected) / expected / expected;
      trust += 1 / (expected * expected);
    }
    const double surprise =
        trust > 0 ? std::max(0.0, (beyond - 3 * std::sqrt(2 * trust)) / trust) : 0;
    for (const auto& [row, seen] : observed) {
      const auto& [o, R] = seen;
      const double age = static_cast<double>(period - last[row]);
      const double before = last[row] == 0 ? V : std::min(P[row] + age * q * V, V);
      const double K = before / (before + R);
      dw[row] = eta * K * o;
      w[row] += dw[row];
      P[row] = (1 - K) * before;
      const double error = last[row] == 0 ? V : E[row] + surprise;
      E[row] = (1 - eta * K) * (1 - eta * K) * error + eta * K * eta * K * R;
      last[row] = period;
    }
    if (j == 3 || j == 4) SmoothBins(first[j] + 1, first[j + 1], V);
  }
  // One bin after the other to its minimum, until none moves. The first value of a number's column,
  // missing, is no bin; bins that never moved take their neighbours' values along unseen.
  void SmoothBins(uint64_t begin, uint64_t end, double V) {
    std::vector<double> s(w.begin() + static_cast<ptrdiff_t>(begin),
                          w.begin() + static_cast<ptrdiff_t>(end));
    const size_t n = s.size();
    for (int sweep = 0; sweep < 3000; ++sweep)
      for (size_t b = 0; b < n; ++b) {
        const double precision = last[begin + b] > 0 ? 1 / P[begin + b] : 1e-6;
        double top = precision * w[begin + b], bottom = precision;
        if (b > 0) top += s[b - 1] / V, bottom += 1 / V;
        if (b + 1 < n) top += s[b + 1] / V, bottom += 1 / V;
        s[b] = top / bottom;
      }
    for (size_t b = 0; b < n; ++b)
      if (last[begin + b] > 0) w[begin + b] = s[b];
  }

  const double sigma_;
  std::map<size_t, double> numerator_, denominator_;
};

}  // namespace tacit::train
