#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "event/confluent.h"
#include "event/message.h"

namespace tacit::event {

// The decision on a message, by its schema.
struct SchemaVerdict {
  enum class Kind {
    kAccept,  // our codec reads it
    kReject,  // it is a dead letter
    kWait,    // the schema is not known yet: it has to be looked up again
  };
  Kind kind = Kind::kWait;
  std::string reason = {};  // except for kAccept
};

// A source of verdicts on schemas. One thread asks it, for each message whose schema is not that of
// the message before, so it must answer quickly: it finds answers in the background.
class SchemaBook {
 public:
  virtual ~SchemaBook() = default;
  // The verdict on a message that is read now.
  virtual SchemaVerdict Look(const SchemaKey& schema) = 0;
  // Begins to find the answer for a message that is read later. Returns false if no more can be
  // looked up at a time.
  virtual bool LookAhead(const SchemaKey&) { return false; }
  // After kWait: returns when the answer is there, or after `patience`.
  virtual void Await(const SchemaKey&, std::chrono::milliseconds patience) {
    std::this_thread::sleep_for(patience);
  }
  // Returns why answers do not come, for the operator; empty if no problem.
  virtual std::string Trouble() { return ""; }
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
    kWait,   // its schema is not known yet: open the same message again, after Await
  };

  // `book` judges the schemas of framed messages; it may be null without framing.
  Envelope(EnvelopeOptions options, std::unique_ptr<SchemaBook> book);

  // `*payload` is a view of the message's value, or of the envelope; the other outcomes write
  // `*reason`. Avro keeps its frame, in front of the value where a header has it: without its
  // schema nobody can read it.
  Outcome Open(const Message& message, std::string_view* payload, std::string* reason);
  // Begins to look up the schema of a message that will be opened. Returns false if no more can be
  // looked up at a time.
  bool LookAhead(const Message& message);
  // After kWait: returns when the schema may be known, or after `patience`.
  void Await(std::chrono::milliseconds patience);
  // Returns why schemas do not become known, for the operator; empty if no problem.
  std::string Trouble() { return book_ == nullptr ? "" : book_->Trouble(); }

  // The event id of the last payload according to its headers, if they give one: source and id of a
  // CloudEvent, which together are unique. Valid until the next message.
  std::string_view event_id() const { return event_id_; }

 private:
  // Reads the headers and notes the event's id. Returns a reason if they forbid reading the value.
  std::optional<std::string> ReadHeaders(const Message& message, std::string_view* schema);
  Outcome OpenFrame(const Message& message, std::string_view header, std::string_view* payload,
                    std::string* reason);

  const EnvelopeOptions options_;
  const std::unique_ptr<SchemaBook> book_;
  // The last accepted schema: most messages have the schema of the message before.
  std::optional<SchemaKey> accepted_;
  SchemaKey awaited_;  // that of the last message that has to wait
  std::string event_id_;
  std::string framed_;  // an Avro value with the frame of its header
};

}  // namespace tacit::event
