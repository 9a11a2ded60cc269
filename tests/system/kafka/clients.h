#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

// librdkafka for the tests' own use.
namespace tacit::test {

struct ClientDeleter {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using Client = std::unique_ptr<rd_kafka_t, ClientDeleter>;

// Null, and a failure of the test, when a property is wrong. Takes over `conf`, where one is given.
Client MakeClient(rd_kafka_type_t type, const std::string& bootstrap,
                  const std::vector<std::pair<std::string, std::string>>& properties,
                  rd_kafka_conf_t* conf = nullptr);

}  // namespace tacit::test
