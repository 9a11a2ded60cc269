#pragma once

#include <cstdint>
#include <vector>

#include "inspect/roles.h"

namespace tacit::inspect {

// Finds the label's column and rule among the columns without a part (`taken` is 0, by column).
// Adds what a person has to know of it to the roles' warnings, and texts in its place that stand
// for none to the missing ones.
void FindLabel(const Sample& sample, const Evidence& evidence, const Named& named,
               std::vector<uint8_t>* taken, Roles* roles);

}  // namespace tacit::inspect
