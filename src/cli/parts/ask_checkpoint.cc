#include "cli/parts/ask_checkpoint.h"

#include <utility>

#include "cli/parts/ask_daemon.h"
#include "store/store.h"
#include "wiring/plans/witness_place.h"

namespace tacit::cli {

Result<boost::json::object> AskCheckpoint(
    const CheckpointPlace& place,
    const std::function<Result<http::Reply>(
        const wiring::Assembly& assembly, std::shared_ptr<const store::Snapshot> snapshot)>& ask) {
  TACIT_ASSIGN(config::Config config, config::Load(place.config, {}, config::LogFiles::kUnread));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  TACIT_ASSIGN(const std::string witness, wiring::WitnessFor(place.checkpoint, place.witness));
  if (witness.empty() && !store::IsCheckpoint(place.checkpoint))
    wiring::TellOfNoWitness(place.checkpoint);
  TACIT_ASSIGN(const store::ReadOnlyStore store,
               store::OpenReadOnly(place.checkpoint, witness, wiring::MakeLayouts(assembly)));
  TACIT_ASSIGN(const http::Reply reply, ask(assembly, store.snapshot));
  TACIT_ASSIGN(boost::json::object answer, ReadAnswer(place.checkpoint, reply.status, reply.body));
  answer["witness"] = !witness.empty();
  return answer;
}

}  // namespace tacit::cli
