#include "serve/inference/infer_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "http/request_json.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

uint64_t BinaryBytes(const OutputTensor& output) {
  if (!output.is_text) return output.numbers.size_bytes();
  uint64_t bytes = 0;
  for (const std::string_view text : output.texts) bytes += sizeof(uint32_t) + text.size();
  return bytes;
}

void AppendBinary(const OutputTensor& output, std::string* out) {
  if (!output.is_text) {
    out->append(reinterpret_cast<const char*>(output.numbers.data()), output.numbers.size_bytes());
    return;
  }
  for (const std::string_view text : output.texts) {
    const auto length = static_cast<uint32_t>(text.size());
    out->append(reinterpret_cast<const char*>(&length), sizeof length);
    out->append(text);
  }
}

void AppendData(const OutputTensor& output, std::string* out) {
  const size_t size = output.is_text ? output.texts.size() : output.numbers.size();
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) *out += ',';
    if (output.is_text)
      http::AppendJsonString(output.texts[i], out);
    else
      AppendNumber(output.numbers[i], out);
  }
}

void AppendOutput(const OutputTensor& output, bool binary, std::string* out) {
  *out += R"({"name":)";
  http::AppendJsonString(output.name, out);
  fmt::format_to(std::back_inserter(*out), R"(,"datatype":"{}","shape":[{}],)",
                 output.is_text ? "BYTES" : "FP32", fmt::join(output.shape, ","));
  if (binary) {
    fmt::format_to(std::back_inserter(*out), R"("parameters":{{"binary_data_size":{}}}}})",
                   BinaryBytes(output));
    return;
  }
  *out += R"("data":[)";
  AppendData(output, out);
  *out += "]}";
}

}  // namespace

Status CheckOutputs(const InferRequest& request, std::string_view model,
                    std::span<const std::string_view> names) {
  for (const InferRequest::Output& asked : request.outputs) {
    if (std::ranges::find(names, std::string_view(asked.name)) == names.end())
      return http::BadRequest(
          fmt::format("{} of {}", http::UnknownName("output", asked.name, names), model));
    if (std::ranges::count(request.outputs, asked.name, &InferRequest::Output::name) > 1)
      return http::BadRequest(fmt::format("output '{}' is asked for twice", asked.name));
  }
  return {};
}

void WriteInferAnswer(const InferRequest& request, const AnsweringModel& model,
                      std::span<const OutputTensor> outputs, http::Reply* reply) {
  struct Chosen {
    const OutputTensor* output;
    bool binary;
  };
  std::vector<Chosen> chosen;
  if (request.outputs.empty())
    for (const OutputTensor& output : outputs) chosen.push_back({&output, request.binary_output});
  for (const InferRequest::Output& asked : request.outputs)
    chosen.push_back(
        {&*std::ranges::find(outputs, std::string_view(asked.name), &OutputTensor::name),
         asked.binary.value_or(request.binary_output)});
  std::string& out = reply->body;
  size_t values = 0;
  for (const OutputTensor& output : outputs) values += output.numbers.size() + output.texts.size();
  out.reserve(values * 12 + 512);
  out = R"({"model_name":)";
  http::AppendJsonString(model.name, &out);
  fmt::format_to(std::back_inserter(out), R"(,"model_version":"{}",)", model.version);
  if (request.id) {
    out += R"("id":)";
    http::AppendJsonString(*request.id, &out);
    out += ',';
  }
  out += R"("parameters":{)";
  out += model.parameters;
  out += R"(},"outputs":[)";
  for (const Chosen& one : chosen) {
    if (&one != &chosen.front()) out += ',';
    AppendOutput(*one.output, one.binary, &out);
  }
  out += "]}";
  if (std::ranges::none_of(chosen, &Chosen::binary)) {
    out += '\n';
    return;
  }
  reply->content_type = "application/octet-stream";
  reply->headers.emplace_back(kJsonBytesField, std::to_string(out.size()));
  for (const Chosen& one : chosen)
    if (one.binary) AppendBinary(*one.output, &out);
}

}  // namespace tacit::serve
