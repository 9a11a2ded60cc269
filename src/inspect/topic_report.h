#pragma once

#include <boost/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "inspect/roles.h"
#include "inspect/sample.h"
#include "inspect/topic_records.h"

// The part of a report that is about a topic, and the sections of a proposal that name it. Of
// noised counts it tells what the brokers know alone. REQUIRES a sample of a topic.
namespace tacit::inspect {

// Lines of the report, by name.
std::vector<std::pair<std::string, std::string>> TopicLines(const Sample& sample,
                                                            const Roles& roles);
// Sentences about what an operator should look at before anything is learnt.
std::vector<std::string> TopicWarnings(const Sample& sample, const Roles& roles);
// {"topic","partitions":[{"partition","begin","end"}],"replicas","in_sync","settings","looked_at":
// [{"partition","begin","end"}]} and, of raw samples, "framing", "schemas", "times", "key".
boost::json::object TopicJson(const Sample& sample, const Roles& roles);

// The field that the records' key is equal to, as a place; "" where there is none. A key is of a
// record's user if nearly all keys are.
std::string FieldOfKeys(const Sample& sample);

// The beginning of section `source`, up to the places of fields, and the section `kafka`.
std::string TopicSourceYaml(const Sample& sample);
std::string KafkaYaml(const TopicFound& topic);
// Keys of these sections that a person has to fill in, with values that let the rest be tried.
std::vector<std::pair<std::string, std::string>> TopicOpenKeys(const Sample& sample);

// "7 days", for people.
std::string DurationText(double milliseconds);

}  // namespace tacit::inspect
