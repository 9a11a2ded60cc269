#include "wiring/build_digest.h"

#include <span>
#include <string>

#include "base/bytes.h"
#include "event/avro/schemas.h"
#include "train/linear/arithmetic.h"
#include "wiring/plans/code_version.h"

namespace tacit::wiring {

Digest BuildOf(const BuildParts& parts) {
  const Assembly& assembly = parts.assembly;
  ByteWriter build;
  const auto put = [&](const Digest& digest) { build.PutArray(std::span<const uint8_t>(digest)); };
  build.PutString("tacit.workers.build.v1").PutString(CodeVersion()).PutString(parts.sources);
  put(train::ArithmeticDigest());
  build.PutString(config::DumpSumming(assembly.config));
  for (const LearnerPlan& learner : assembly.learners) {
    put(learner.model->Fingerprint());
    build.Put(learner.charge.noise_multiplier);
  }
  if (assembly.config.source.avro_schemas != nullptr)
    build.PutString(assembly.config.source.avro_schemas->reader());
  put(assembly.items ? assembly.items->fingerprint() : Digest{});
  put(parts.opt_out != nullptr ? parts.opt_out->digest() : Digest{});
  const auto* key = reinterpret_cast<const char*>(parts.key.data());
  return workers::Hmac({key, parts.key.size()}, build.bytes());
}

}  // namespace tacit::wiring
