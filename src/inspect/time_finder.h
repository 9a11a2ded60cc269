#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/roles.h"

namespace tacit::inspect {

// Finds the column of the record's time among the columns without a part (`taken` is 0, by column):
// nearly all of its values are times of one form, or a person has named it. Tells of the few that
// are none, or are of another age.
void FindTime(const Sample& sample, const Evidence& evidence, const Named& named,
              std::vector<uint8_t>* taken, Roles* roles);

// True if a column is one of times by its name or by most of its values, readable or not. It is no
// feature, and no id.
bool SeemsTime(const Column& column, const Profile& profile);

// Says why such a column is not the record's time. Tells of its values where they are the reason.
std::string LeaveTimeOut(const Sample& sample, const Evidence& evidence, size_t column,
                         Roles* roles);

}  // namespace tacit::inspect
