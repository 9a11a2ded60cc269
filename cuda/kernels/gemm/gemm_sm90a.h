#pragma once

#include "cuda/device/stream.h"
#include "cuda/kernels/gemm/gemm.h"
#include "cuda/kernels/gemm/gemm_args.h"
#include "cuda/kernels/gemm/gemm_ends.h"

namespace tacit::cuda {

// Puts the product, or the products of its splits, on the stream, by wgmma. `args` as MakeGemmArgs
// gives them for stages of kWgmmaDepth; REQUIRES HasWgmma of the device. In its place most
// programs of the emulated device have gemm_sm90a_absent.cc.
inline constexpr uint32_t kWgmmaDepth = 64;
Status LaunchWgmma(Stream& stream, Form form_a, Form form_b, const GemmArgs<uint16_t>& args,
                   const GemmPlan& plan);
// The same with other ends, for plans without splits. Products a b:
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const ActivateEnd& end);
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const Squared<ActivateEnd>& end);
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const AddBiasEnd& end);
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const AddBiasRoundEnd& end);
// Products a b^T.
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const RoundEnd& end);
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const MaskEnd& end);
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const Squared<MaskEnd>& end);

// Says whether it is there: in programs of the emulated device where they link it.
bool HasWgmma();

}  // namespace tacit::cuda
