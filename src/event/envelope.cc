#include "event/envelope.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace tacit::event {
namespace {

using Reason = std::optional<std::string>;

// CloudEvents' Kafka binding, binary mode: attributes are headers, the value is the data.
constexpr std::string_view kCloudEvent = "ce_";
constexpr std::string_view kStructured = "application/cloudevents";

struct CloudEvent {
  std::string_view specversion, source, id, content_type;
};

// Notes a header. If a header occurs twice the last one counts, as for Kafka's own clients.
void Note(const MessageHeader& header, CloudEvent* event) {
  if (header.name == "content-type") event->content_type = header.value;
  if (!header.name.starts_with(kCloudEvent)) return;
  const std::string_view attribute = header.name.substr(kCloudEvent.size());
  if (attribute == "specversion") event->specversion = header.value;
  if (attribute == "source") event->source = header.value;
  if (attribute == "id") event->id = header.value;
}

}  // namespace

Envelope::Envelope(EnvelopeOptions options, std::unique_ptr<SchemaBook> book)
    : options_(options), book_(std::move(book)) {
  TACIT_CHECK(!options_.framed || book_ != nullptr,
              "frames name schemas, and there is no book of schemas");
}

Reason Envelope::ReadHeaders(const Message& message, std::string_view* schema) {
  CloudEvent event;
  for (const MessageHeader& header : message.headers) {
    Note(header, &event);
    if (header.name == kSchemaIdHeader) *schema = header.value;
  }
  if (event.content_type.starts_with(kStructured))
    return "header content-type: a CloudEvent in structured mode; send them in binary mode, the "
           "data as value";
  if (options_.kind != PayloadKind::kAvro &&
      event.content_type.find("avro") != std::string_view::npos)
    return "header content-type: Avro, which source.format avro reads";
  if (event.specversion.empty()) return std::nullopt;
  if (!event.specversion.starts_with("1.")) return "header ce_specversion: is not known, 1.0 is";
  if (event.id.empty()) return std::nullopt;
  event_id_.append(event.source).append(1, ' ').append(event.id);
  return std::nullopt;
}

Envelope::Outcome Envelope::Open(const Message& message, std::string_view* payload,
                                 std::string* reason) {
  event_id_.clear();
  if (message.null) {
    *reason = "null value";
    return Outcome::kFault;
  }
  std::string_view schema;
  if (!message.headers.empty()) {
    if (Reason wrong = ReadHeaders(message, &schema)) {
      *reason = std::move(*wrong);
      return Outcome::kFault;
    }
  }
  if (options_.framed) return OpenFrame(message, schema, payload, reason);
  // No format but Avro begins with a zero byte, and Confluent's frames do.
  if (options_.kind != PayloadKind::kAvro && message.value.starts_with('\0')) {
    *reason =
        "the value begins with a zero byte, as a schema frame does; source.framing: confluent "
        "takes those off";
    return Outcome::kFault;
  }
  *payload = message.value;
  return Outcome::kPayload;
}

Envelope::Outcome Envelope::OpenFrame(const Message& message, std::string_view header,
                                      std::string_view* payload, std::string* reason) {
  Unframed unframed;
  if (Reason wrong = Unframe(message.value, header, options_.kind, &unframed)) {
    *reason = std::move(*wrong);
    return Outcome::kFault;
  }
  if (accepted_ != unframed.schema) {
    SchemaVerdict verdict = book_->Look(unframed.schema);
    if (verdict.kind != SchemaVerdict::Kind::kAccept) {
      *reason = fmt::format("schema {}: {}", Text(unframed.schema), verdict.reason);
      if (verdict.kind == SchemaVerdict::Kind::kReject) return Outcome::kFault;
      awaited_ = unframed.schema;
      return Outcome::kWait;
    }
    accepted_ = unframed.schema;
  }
  *payload = unframed.payload;
  if (options_.kind == PayloadKind::kAvro) {
    if (!header.empty()) framed_.assign(header.substr(0, kGuidFrameBytes)).append(message.value);
    *payload = header.empty() ? message.value : std::string_view(framed_);
  }
  return Outcome::kPayload;
}

bool Envelope::LookAhead(const Message& message) {
  if (!options_.framed) return false;
  std::string_view header;
  for (const MessageHeader& one : message.headers)
    if (one.name == kSchemaIdHeader) header = one.value;
  Unframed unframed;
  if (message.null || Unframe(message.value, header, options_.kind, &unframed)) return true;
  return accepted_ == unframed.schema || book_->LookAhead(unframed.schema);
}

void Envelope::Await(std::chrono::milliseconds patience) {
  if (book_ != nullptr) book_->Await(awaited_, patience);
}

}  // namespace tacit::event
