#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/api.h"
#include "serve/inference/infer_answer.h"

namespace tacit::serve {

// The fields of a header that a test makes.
class TestFields final : public http::HeaderFields {
 public:
  explicit TestFields(std::map<std::string, std::string> fields) : fields_(std::move(fields)) {}
  std::string_view Find(std::string_view name) const override {
    const auto at = fields_.find(std::string(name));
    return at == fields_.end() ? std::string_view() : std::string_view(at->second);
  }

 private:
  const std::map<std::string, std::string> fields_;
};

// All routes as one server thread has them, without the server.
class InferRig {
 public:
  explicit InferRig(Services services) {
    services.metrics = &registry_;
    services.readiness = [this] { return readiness; };
    handler_ = MakeApi(std::move(services))();
  }
  http::Reply Ask(std::string_view method, std::string_view path, std::string_view body = "",
                  std::map<std::string, std::string> fields = {},
                  http::Role role = http::Role::kPublic) {
    const TestFields made(std::move(fields));
    http::Request request;
    request.role = role;
    request.method = method;
    request.path = path.substr(0, path.find('?'));
    request.query = path.substr(std::min(path.size(), request.path.size() + 1));
    request.body = body;
    request.fields = &made;
    http::Reply reply;
    handler_->Handle(request, &reply);
    return reply;
  }
  // A request with binary tensors behind its JSON.
  http::Reply AskBinary(std::string_view path, const std::string& json,
                        const std::string& tensors) {
    return Ask("POST", path, json + tensors,
               {{std::string(kJsonBytesField), std::to_string(json.size())}});
  }

  Readiness readiness{true, ""};

 private:
  metrics::Registry registry_;
  std::unique_ptr<http::Handler> handler_;
};

// The JSON of a reply, without the binary tensors.
inline std::string JsonOf(const http::Reply& reply) {
  for (const auto& [name, value] : reply.headers)
    if (name == kJsonBytesField) return reply.body.substr(0, std::stoul(value));
  return reply.body;
}

template <class T>
std::string Bytes(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

inline std::string Texts(std::initializer_list<std::string_view> texts) {
  std::string bytes;
  for (const std::string_view text : texts) {
    bytes += Bytes<uint32_t>({static_cast<uint32_t>(text.size())});
    bytes += text;
  }
  return bytes;
}

}  // namespace tacit::serve
