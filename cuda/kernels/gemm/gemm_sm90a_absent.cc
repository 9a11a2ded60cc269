// Stands where there are no instructions of sm_90a.
#include "base/check.h"
#include "cuda/kernels/gemm/gemm_sm90a.h"

namespace tacit::cuda {

bool HasWgmma() { return false; }

Status LaunchWgmma(Stream&, Form, Form, const GemmArgs<uint16_t>&, const GemmPlan&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const ActivateEnd&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&,
                   const Squared<ActivateEnd>&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const AddBiasEnd&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const AddBiasRoundEnd&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const RoundEnd&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const MaskEnd&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}
Status LaunchWgmma(Stream&, const GemmArgs<uint16_t>&, const GemmPlan&, const Squared<MaskEnd>&) {
  TACIT_CHECK(false, "this device has no wgmma");
  return {};
}

}  // namespace tacit::cuda
