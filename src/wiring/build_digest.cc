#include "wiring/build_digest.h"

#include <span>
#include <string>

#include "base/bytes.h"
#include "base/files/regular_file.h"
#include "train/linear/arithmetic.h"
#include "wiring/plans/code_version.h"

namespace tacit::wiring {

Result<Digest> BuildOf(const Assembly& assembly) {
  const Digest arithmetic = train::ArithmeticDigest();
  ByteWriter build;
  build.PutString(CodeVersion()).PutArray(std::span<const uint8_t>(arithmetic));
  build.PutString(config::DumpSumming(assembly.config));
  for (const LearnerPlan& learner : assembly.learners) {
    const Digest model = learner.model->Fingerprint();
    build.PutArray(std::span<const uint8_t>(model)).Put(learner.charge.noise_multiplier);
  }
  for (const std::string& file : {assembly.config.catalogue.file, assembly.config.source.opt_out}) {
    if (file.empty()) {
      build.PutString("");
      continue;
    }
    TACIT_ASSIGN(const std::string bytes, ReadRegularFile(file));
    const Digest digest = Sha256().Update(bytes).Finish();
    build.PutArray(std::span<const uint8_t>(digest));
  }
  return Sha256().Update(build.bytes()).Finish();
}

}  // namespace tacit::wiring
