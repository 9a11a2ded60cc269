#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

// Automatic differentiation of small float64 programs, number by number: what hand-written backward
// passes are held against. Slow, and knows no layer.
namespace tacit::model::testing {

class Tape;

struct Var {
  Tape* tape = nullptr;
  size_t id = 0;
  double value() const;
};

class Tape {
 public:
  Var Leaf(double value) { return Push(value, 0, 0, 0, 0); }
  double value(size_t id) const { return values_[id]; }

  Var Push(double value, size_t a, double da, size_t b, double db) {
    values_.push_back(value);
    nodes_.push_back({a, b, da, db});
    return {this, values_.size() - 1};
  }
  // d out / d node, for every node.
  std::vector<double> Gradient(Var out) const {
    std::vector<double> grad(values_.size());
    grad[out.id] = 1;
    for (size_t i = out.id + 1; i-- > 0;) {
      grad[nodes_[i].a] += nodes_[i].da * grad[i];
      grad[nodes_[i].b] += nodes_[i].db * grad[i];
    }
    return grad;
  }

 private:
  // A leaf points at node 0 with weight 0.
  struct Node {
    size_t a, b;
    double da, db;
  };
  std::vector<double> values_;
  std::vector<Node> nodes_;
};

inline double Var::value() const { return tape->value(id); }

inline Var operator+(Var x, Var y) { return x.tape->Push(x.value() + y.value(), x.id, 1, y.id, 1); }
inline Var operator-(Var x, Var y) {
  return x.tape->Push(x.value() - y.value(), x.id, 1, y.id, -1);
}
inline Var operator*(Var x, Var y) {
  return x.tape->Push(x.value() * y.value(), x.id, y.value(), y.id, x.value());
}
inline Var operator/(Var x, Var y) {
  const double q = x.value() / y.value();
  return x.tape->Push(q, x.id, 1 / y.value(), y.id, -q / y.value());
}
inline Var operator*(double k, Var x) { return x.tape->Push(k * x.value(), x.id, k, x.id, 0); }
inline Var operator+(Var x, double k) { return x.tape->Push(x.value() + k, x.id, 1, x.id, 0); }
inline Var Exp(Var x) {
  const double e = std::exp(x.value());
  return x.tape->Push(e, x.id, e, x.id, 0);
}
inline Var Log(Var x) { return x.tape->Push(std::log(x.value()), x.id, 1 / x.value(), x.id, 0); }
inline Var Sqrt(Var x) {
  const double root = std::sqrt(x.value());
  return x.tape->Push(root, x.id, 0.5 / root, x.id, 0);
}
inline Var Relu(Var x) {
  const bool on = x.value() > 0;
  return x.tape->Push(on ? x.value() : 0, x.id, on, x.id, 0);
}
inline Var Tanh(Var x) {
  const double t = std::tanh(x.value());
  return x.tape->Push(t, x.id, 1 - t * t, x.id, 0);
}
inline Var Sigmoid(Var x) {
  const double s = 1 / (1 + std::exp(-x.value()));
  return x.tape->Push(s, x.id, s * (1 - s), x.id, 0);
}

}  // namespace tacit::model::testing
