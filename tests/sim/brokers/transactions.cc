// A client's transactions.
#include <algorithm>

#include "sim/brokers/client.h"

using tacit::sim::In;
using tacit::sim::Lock;
using tacit::sim::MakeError;
using tacit::sim::Request;
using tacit::sim::TheHub;
using tacit::sim::TransactionState;

namespace {

rd_kafka_error_t* WrongState() {
  return MakeError(RD_KAFKA_RESP_ERR__STATE, "Operation not valid in this state");
}

rd_kafka_error_t* Fatal(rd_kafka_t* client) {
  return MakeError(client->fatal, client->fatal_words);
}

// The answer of a coordinator, or that none has come: then the same call may be made again.
rd_kafka_error_t* Judge(rd_kafka_t* client, rd_kafka_resp_err_t error, const std::string& what) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return nullptr;
    case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
      client->FailForGood(RD_KAFKA_RESP_ERR__FENCED, what + ": " + rd_kafka_err2str(error));
      return Fatal(client);
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
      return MakeError(RD_KAFKA_RESP_ERR__TIMED_OUT, what + ": no answer has come", true);
    default:
      client->FailForGood(error, what + ": " + rd_kafka_err2str(error));
      return Fatal(client);
  }
}

rd_kafka_error_t* End(rd_kafka_t* client, bool commit, int timeout_ms) {
  Lock lock(TheHub().mutex);
  const auto until = In(timeout_ms);
  if (client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return Fatal(client);
  if (client->transaction != TransactionState::kOpen &&
      client->transaction != TransactionState::kEnding)
    return WrongState();
  client->transaction = TransactionState::kEnding;
  if (!commit) client->DropWaiting(RD_KAFKA_RESP_ERR__PURGE_QUEUE);
  if (client->Flush(lock, until) != RD_KAFKA_RESP_ERR_NO_ERROR &&
      client->fatal == RD_KAFKA_RESP_ERR_NO_ERROR)
    return MakeError(RD_KAFKA_RESP_ERR__TIMED_OUT,
                     "Failed to flush all outstanding messages within the API timeout", true);
  if (client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return Fatal(client);
  if (commit && client->transaction_error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return MakeError(client->transaction_error, "The transaction can only be aborted");
  const std::string name = client->conf->Get("transactional.id");
  const bool empty = std::ranges::none_of(
      client->lanes, [](const auto& one) { return one.second.in_transaction; });
  if (!empty) {
    const auto error = client->AskUntil(
        lock, Request::kEndTransaction, client->CoordinatorOf(name), until,
        [&] { return client->cluster->EndTransaction(name, client->producer, commit); });
    if (auto* const judged = Judge(client, error, "Failed to end the transaction")) return judged;
  }
  for (auto& [place, lane] : client->lanes) lane.in_transaction = false;
  client->transaction = TransactionState::kReady;
  client->transaction_error = RD_KAFKA_RESP_ERR_NO_ERROR;
  return nullptr;
}

}  // namespace

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_error_t* rd_kafka_init_transactions(rd_kafka_t* client, int timeout_ms) {
  Lock lock(TheHub().mutex);
  const std::string name = client->conf->Get("transactional.id");
  if (name.empty()) return MakeError(RD_KAFKA_RESP_ERR__NOT_CONFIGURED, "no transactional.id");
  if (client->transaction != TransactionState::kNone) return WrongState();
  const int32_t coordinator = client->CoordinatorOf(name);
  const auto error =
      client->AskUntil(lock, Request::kInitProducer, coordinator, In(timeout_ms), [&] {
        const auto [refused, id] =
            client->cluster->InitProducer(name, client->conf->Number("transaction.timeout.ms"));
        client->producer = id;
        return refused;
      });
  if (auto* const judged = Judge(client, error, "Failed to initialize Producer ID")) return judged;
  client->transaction = TransactionState::kReady;
  return nullptr;
}

rd_kafka_error_t* rd_kafka_begin_transaction(rd_kafka_t* client) {
  const Lock lock(TheHub().mutex);
  if (client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return Fatal(client);
  if (client->transaction != TransactionState::kReady) return WrongState();
  client->transaction = TransactionState::kOpen;
  return nullptr;
}

rd_kafka_error_t* rd_kafka_commit_transaction(rd_kafka_t* client, int timeout_ms) {
  return End(client, true, timeout_ms);
}
rd_kafka_error_t* rd_kafka_abort_transaction(rd_kafka_t* client, int timeout_ms) {
  return End(client, false, timeout_ms);
}

}  // extern "C"
// NOLINTEND
