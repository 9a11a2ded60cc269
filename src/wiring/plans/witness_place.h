#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

// Places the files that distinguish an older copy of a store from the newest. They prove nothing if
// they are restored together with the store.
namespace tacit::wiring {

// kInvalidArgument where store.witness is not set and this is a service.
Status CheckWitnessChosen(const config::Store& store, bool in_service);

// The nearness of a witness or mark to its store.
enum class Closeness { kSameFolder, kSameDevice, kApart };
// REQUIRES that both exist; a file that cannot be examined counts as apart.
Closeness ClosenessOf(const std::string& store, const std::string& witness);

// Logs how near witness and mark lie to the store, which is open.
void TellOfWitnessPlaces(const config::Config& config);

// The path of the witness for readers of this directory, "" if there is none: FOLDER/NAME.witness
// or FOLDER-witness/NAME.witness. Fails where this user may not see whether there is one: an older
// copy of the directory would pass for the newest. A checkpoint needs none.
Result<std::string> WitnessBeside(const std::string& directory);
// The same, or `named` if it is not empty.
Result<std::string> WitnessFor(const std::string& directory, const std::string& named);
// Warns on stderr that without a witness an older copy of the directory would not be noticed.
void TellOfNoWitness(const std::string& directory);

}  // namespace tacit::wiring
