#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "lab/audit/audit_run.h"

namespace tacit::lab {

boost::json::object ToJson(const AuditReport& report);
// The table, and what it means.
std::string ToText(const AuditReport& report);

}  // namespace tacit::lab
