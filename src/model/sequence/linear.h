#pragma once

#include <span>

#include "model/dense_net.h"
#include "model/sequence/unit_gradient.h"
#include "ops/unit_ops.h"

namespace tacit::model {

// out = in W + b, then max(out, 0) when relu.
inline Status LinearForward(ops::UnitOps& ops, const LinearLayer& layer,
                            std::span<const float> parameters, ops::ConstMatrix in, bool relu,
                            ops::Matrix out) {
  TACIT_RETURN_IF_ERROR(
      ops.Gemm(ops::Transpose::kNo, in, ops::Transpose::kNo, layer.Weights(parameters), 0, out));
  ops.AddBias(out, layer.Biases(parameters), relu);
  return {};
}

// Adds the layer's gradient to the unit's; in_grad = grad W^T.
inline Status LinearBackward(ops::UnitOps& ops, const LinearLayer& layer,
                             std::span<const float> parameters, ops::ConstMatrix in,
                             ops::ConstMatrix grad, UnitGradient* gradient, ops::Matrix in_grad) {
  TACIT_RETURN_IF_ERROR(gradient->AddLinear(layer, in, grad));
  return ops.Gemm(ops::Transpose::kNo, grad, ops::Transpose::kYes, layer.Weights(parameters), 0,
                  in_grad);
}

}  // namespace tacit::model
