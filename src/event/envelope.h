#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "event/confluent.h"
#include "event/message.h"

namespace tacit::event {

// The decision on messages of one schema.
struct SchemaVerdict {
  enum class Kind {
    kAccept,   // our codec reads them
    kReject,   // it never will: they are dead letters
    kUnknown,  // not known yet, or the registry is out of reach: ask again later
  };
  Kind kind = Kind::kUnknown;
  std::string reason = {};  // except for kAccept
};

// A source of verdicts on schemas. One thread asks it, for each message whose schema is not yet
// accepted or rejected, so it must answer quickly: it returns kUnknown and finds the answer in the
// background.
class SchemaBook {
 public:
  virtual ~SchemaBook() = default;
  virtual SchemaVerdict Look(const SchemaKey& schema) = 0;
};

struct EnvelopeOptions {
  bool framed = false;  // Confluent's framing; otherwise the value is the payload
  PayloadKind kind = PayloadKind::kJson;
};

// Removes what producers put around a payload: schema frames and CloudEvents' headers. One per
// source, not thread-safe. Allocates nothing for a good message of a known schema.
class Envelope {
 public:
  enum class Outcome {
    kPayload,
    kFault,  // a dead letter
    kWait,   // its schema is not known yet: open the same message again later
  };

  // `book` judges the schemas of framed messages; it may be null without framing.
  Envelope(EnvelopeOptions options, std::unique_ptr<SchemaBook> book);

  // `*payload` is a view of the message's value; the other outcomes write `*reason`.
  Outcome Open(const Message& message, std::string_view* payload, std::string* reason);

  // The event id of the last payload according to its headers, if they give one: source and id of a
  // CloudEvent, which together are unique. Valid until the next message.
  std::string_view event_id() const { return event_id_; }

 private:
  // Reads the headers and notes the event's id. Returns a reason if they forbid reading the value.
  std::optional<std::string> ReadHeaders(const Message& message, std::string_view* schema);
  Outcome OpenFrame(const Message& message, std::string_view header, std::string_view* payload,
                    std::string* reason);
  const SchemaVerdict& VerdictOn(const SchemaKey& schema);

  const EnvelopeOptions options_;
  const std::unique_ptr<SchemaBook> book_;
  // The last accepted schema: most messages have the schema of the message before.
  std::optional<SchemaKey> accepted_;
  std::unordered_map<SchemaKey, SchemaVerdict, SchemaKeyHash> known_;  // never kUnknown
  SchemaVerdict unknown_;                                              // the last such answer
  std::string event_id_;
};

}  // namespace tacit::event
