#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Squared norms, in double inside, as ops::Backend has them. T is float or uint16_t, a bf16.
namespace tacit::cuda {

// out[r] = sum of x[r,c]^2.
Status RowSquaredNorms(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<float> out);
// The same for each matrix of a list, in one part (RowSquares): for those that came out of a kernel
// which did not leave them (gemm.h).
template <class T>
Status SquareRows(Stream& stream, const MatrixList<const T>& x, const MatrixList<double>& squares);

// These are of pairs of matrices, all of as many rows, and have one pair's results behind the
// other's. The squares of the rows of `a` and `g` are given in any parts.
//
// own[r] = |a_r|^2 |g_r|^2, the squared norm of what row r alone adds to A^T G.
Status RowGradientNorms(Stream& stream, const MatrixList<const double>& a_squares,
                        const MatrixList<const double>& g_squares, DeviceSpan<double> own);
// out[u] = |A_u^T G_u|^2 of the unit whose rows end at unit_end[u], from `own` and, for a unit of
// several rows, by the rules of ops::Backend::UnitSquaredNorms.
template <class T>
Status UnitSquaredNorms(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                        const MatrixList<const T>& a, const MatrixList<const T>& g,
                        DeviceSpan<const double> own, DeviceSpan<float> out);
// The same where no unit has more than one row, in one launch.
Status OneRowNorms(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                   const MatrixList<const double>& a_squares,
                   const MatrixList<const double>& g_squares, DeviceSpan<float> out);

}  // namespace tacit::cuda
