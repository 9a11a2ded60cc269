// Fuzzes what a schema registry answers: the whole of it, or the schema in it, which anybody who
// may register one has written.
#include <boost/json.hpp>

#include "event/schema_books.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit::event;
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  const uint8_t choice = tacit::fuzz::TakeChoice(&bytes) % 4;
  const PayloadKind kind = choice % 2 == 0 ? PayloadKind::kProtobuf : PayloadKind::kJson;
  std::string answer(bytes);
  if (choice < 2)
    answer = boost::json::serialize(
        boost::json::object{{"schemaType", choice == 0 ? "PROTOBUF" : "JSON"}, {"schema", answer}});
  const SchemaVerdict verdict = JudgeSchema(answer, kind);
  tacit::fuzz::Demand(verdict.reason.empty() == (verdict.kind == SchemaVerdict::Kind::kAccept),
                      "a schema that is not accepted has a reason");
  tacit::fuzz::Demand(verdict.reason.size() < 250, "a reason is short");
  (void)ParseSchemaKey(bytes);
  return 0;
}
