#pragma once

#include <string>

#include "config/config.h"

namespace tacit::daemon {

// The end of `tacitd --check-config` where the source is a topic: a comment on what its brokers say
// of it. Brokers that do not answer within a moment are a note: the rest holds without them. Reads
// no record, and changes nothing at the brokers.
std::string TopicText(const config::Config& config);

}  // namespace tacit::daemon
