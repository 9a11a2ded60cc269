#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "event/confluent.h"
#include "event/message.h"

namespace tacit::event {

// What is to become of messages of one schema.
struct SchemaVerdict {
  enum class Kind {
    kAccept,   // our codec reads them
    kReject,   // it never will: they are dead letters
    kUnknown,  // not known yet, or whoever knows is out of reach: ask again later
  };
  Kind kind = Kind::kUnknown;
  std::string reason = {};  // but for kAccept
};

// Who knows schemas. Asked from one thread, for a schema not yet accepted or rejected each time a
// message of it comes up, so an answer must not take long: kUnknown, and go on asking behind it.
class SchemaBook {
 public:
  virtual ~SchemaBook() = default;
  virtual SchemaVerdict Look(const SchemaKey& schema) = 0;
};

struct EnvelopeOptions {
  bool framed = false;  // Confluent's framing; otherwise the value is the payload
  PayloadKind kind = PayloadKind::kJson;
};

// Takes off what producers put around a payload: schema frames, CloudEvents' headers. One per
// source, not thread-safe. Nothing is allocated for a good message of a schema that is known.
class Envelope {
 public:
  enum class Outcome {
    kPayload,
    kFault,  // a dead letter
    kWait,   // its schema is not known yet: the same message is to be opened again later
  };

  // `book` is asked about framed messages, and may be null without framing.
  Envelope(EnvelopeOptions options, std::unique_ptr<SchemaBook> book);

  // `*payload` is a view of the message's value; `*reason` is written for the other outcomes.
  Outcome Open(const Message& message, std::string_view* payload, std::string* reason);

  // The last payload's event by its headers, where they name it: source and id of a CloudEvent,
  // which together are unique. Good until the next message.
  std::string_view event_id() const { return event_id_; }

 private:
  // Why the headers forbid to read the value, if so. Notes what they say of the event.
  std::optional<std::string> ReadHeaders(const Message& message, std::string_view* schema);
  Outcome OpenFrame(const Message& message, std::string_view header, std::string_view* payload,
                    std::string* reason);
  const SchemaVerdict& VerdictOn(const SchemaKey& schema);

  const EnvelopeOptions options_;
  const std::unique_ptr<SchemaBook> book_;
  // Most messages are of the schema of the one before.
  std::optional<SchemaKey> accepted_;
  std::unordered_map<SchemaKey, SchemaVerdict, SchemaKeyHash> known_;  // never kUnknown
  SchemaVerdict unknown_;                                              // the last such answer
  std::string event_id_;
};

}  // namespace tacit::event
