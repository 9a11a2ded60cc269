#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/avro/schema.h"
#include "event/avro/wire.h"
#include "event/bad_record.h"
#include "event/places/place_tree.h"

namespace tacit::event {

// A step of a program: how one value is read, and where it goes.
struct AvroStep {
  enum class Op : uint8_t {
    kNothing,  // null, or what takes no bytes
    kBoolean,
    kInt,
    kLong,
    kFloat,
    kDouble,
    kBytes,
    kFixed,
    kEnum,
    kArray,
    kMap,
    kUnion,
    kRecord,
    kDefault,   // of a field that the writer's schema lacks
    kMismatch,  // a branch or symbol that the reader's schema has no place for
  };
  // The value is passed over.
  static constexpr uint32_t kNowhere = UINT32_MAX;

  Op op = Op::kNothing;
  AvroType::Logical logical = AvroType::Logical::kNone;
  bool local = false;    // a time by a clock that is not UTC's
  bool is_text = false;  // kBytes
  bool skipped = false;  // nothing in it is wanted
  uint32_t scale = 0;    // of a decimal
  uint32_t place = kNowhere;
  uint32_t first = 0, count = 0;  // the steps below, in AvroProgram
  // kFixed: bytes; kArray, kMap: those of an element, at least; kDefault: its place among the
  // defaults
  uint64_t size = 0;
};

// A value without others in it.
struct AvroValue {
  enum class Kind : uint8_t { kNull, kFlag, kInteger, kFloat, kDouble, kText };
  Kind kind = Kind::kNull;
  int64_t integer = 0;         // kInteger, kFlag
  double number = 0;           // kFloat, kDouble
  std::string_view text = {};  // kText: a text, bytes or an enum's symbol
};

using AvroOp = AvroStep::Op;

// A tree of places, of MakePlaceTree.
using AvroPlaces = std::shared_ptr<const std::vector<PlaceNode>>;

// A graph of steps by which records of one schema are read by another. It is compiled once, with
// names and types resolved by Avro's rules. Reading calls nothing for a level of a record: it has a
// stack of kLevelsMost. A value that goes nowhere is skipped as its writer wrote it.
//
// Immutable, and safe for many readers. Holds the schemas. Bounded: kStepsMost steps.
class AvroProgram {
 public:
  static constexpr size_t kStepsMost = 50'000, kLevelsMost = 64;
  // The only place where all values are wanted.
  static constexpr uint32_t kEverywhere = AvroStep::kNowhere - 1;

  // The working memory of a reader.
  struct Stack;

  // Without `reader`, records are read as they were written. `places` are the wanted ones, without
  // which all are. Fails where no record of the one can be read by the other, or where a record
  // is no Avro record or takes no bytes; the message names the field.
  static Result<std::shared_ptr<const AvroProgram>> Compile(
      std::shared_ptr<const AvroSchema> writer, std::shared_ptr<const AvroSchema> reader,
      AvroPlaces places);

  // Takes a record off the front of `bytes`. `sink` has
  //   MaybeBad Value(const AvroStep&, const AvroValue&);
  //   MaybeBad Open(const AvroStep&);     // of a list, map or record
  //   void Key(std::string_view);         // a map's, or a field's name
  //   void Close(const AvroStep&);
  // for what goes somewhere. Returns a reason if the bytes are no such record, or the sink's.
  template <class Sink>
  MaybeBad Read(AvroBytes* bytes, Stack* stack, Sink* sink) const;

 private:
  friend class AvroCompiler;
  // A step below another. `key`: its name, in lists its index; empty for what is skipped. `next` is
  // the child behind it in the order of places: keys come most often in that order.
  struct Child {
    std::string_view key = {};
    uint32_t step = 0;
    uint32_t next = 0;
  };

  template <class Sink>
  MaybeBad ReadLeaf(const AvroStep& step, AvroBytes* bytes, Sink* sink) const;
  // The step of a map's or list's element. The first child is that of the others.
  uint32_t Below(const AvroStep& step, std::string_view key, uint32_t* guess) const;

  // Begins the next block of a list or map; `*ends` where there is none.
  static MaybeBad BeginBlock(const AvroStep& step, AvroBytes* bytes, uint64_t* left, bool* ends);

  std::shared_ptr<const AvroSchema> writer_, reader_;
  AvroPlaces places_;
  std::vector<AvroStep> steps_;
  std::vector<Child> children_;  // their keys are texts of the schemas and places
  std::vector<std::string_view> defaults_;
};

struct AvroProgram::Stack {
  struct Frame {
    const AvroStep* step = nullptr;
    uint32_t next = 0;   // kRecord: the child that is read next
    uint32_t guess = 0;  // kMap, kArray: the child whose key comes next
    uint64_t left = 0;   // elements of the block
    uint64_t index = 0;  // kArray: of the next element
    AvroBytes outer;     // kDefault: the bytes behind it
  };
  Frame frames[kLevelsMost];
};

inline BadRecord DamagedAvro() { return {"no valid Avro: truncated or damaged", BadPart::kSyntax}; }

template <class Sink>
MaybeBad AvroProgram::ReadLeaf(const AvroStep& step, AvroBytes* bytes, Sink* sink) const {
  AvroValue value;
  switch (step.op) {
    case AvroOp::kBoolean: {
      value = {.kind = AvroValue::Kind::kFlag, .integer = bytes->Fixed<uint8_t>()};
      if (value.integer > 1) bytes->Damage();
      break;
    }
    case AvroOp::kInt:
    case AvroOp::kLong:
      value = {.kind = AvroValue::Kind::kInteger, .integer = bytes->Long()};
      if (step.op == AvroOp::kInt && value.integer != static_cast<int32_t>(value.integer))
        bytes->Damage();
      break;
    case AvroOp::kFloat:
      value = {.kind = AvroValue::Kind::kFloat,
               .number = std::bit_cast<float>(bytes->Fixed<uint32_t>())};
      break;
    case AvroOp::kDouble:
      value = {.kind = AvroValue::Kind::kDouble,
               .number = std::bit_cast<double>(bytes->Fixed<uint64_t>())};
      break;
    case AvroOp::kBytes:
      value = {.kind = AvroValue::Kind::kText, .text = bytes->Bytes()};
      break;
    case AvroOp::kFixed:
      value = {.kind = AvroValue::Kind::kText, .text = bytes->Take(step.size)};
      break;
    case AvroOp::kEnum: {
      const auto symbol = static_cast<uint64_t>(bytes->Long());
      if (symbol >= step.count) bytes->Damage();
      if (bytes->damaged() || step.place == AvroStep::kNowhere) break;
      const Child& child = children_[step.first + symbol];
      if (child.key.empty())
        return BadRecord("a symbol that the reader's schema does not know, and has no default for",
                         BadPart::kSchema);
      value = {.kind = AvroValue::Kind::kText, .text = child.key};
      break;
    }
    case AvroOp::kMismatch:
      return BadRecord("a type that the reader's schema has no place for", BadPart::kSchema);
    default:
      break;
  }
  if (bytes->damaged()) return DamagedAvro();
  return step.place == AvroStep::kNowhere ? std::nullopt : sink->Value(step, value);
}

template <class Sink>
MaybeBad AvroProgram::Read(AvroBytes* bytes, Stack* stack, Sink* sink) const {
  const AvroStep* step = steps_.data();
  size_t depth = 0;
  while (true) {
    if (step->op == AvroOp::kUnion) {
      const auto branch = static_cast<uint64_t>(bytes->Long());
      if (branch >= step->count || bytes->damaged()) return DamagedAvro();
      step = &steps_[children_[step->first + branch].step];
      continue;
    }
    const bool holds = step->op == AvroOp::kRecord || step->op == AvroOp::kArray ||
                       step->op == AvroOp::kMap || step->op == AvroOp::kDefault;
    if (!holds) {
      if (MaybeBad bad = ReadLeaf(*step, bytes, sink)) return bad;
    } else {
      if (depth == kLevelsMost)
        return BadRecord("no record that is read: it has more than 64 levels", BadPart::kSyntax);
      typename Stack::Frame& frame = stack->frames[depth++];
      frame.step = step;
      frame.next = frame.guess = 0;
      frame.left = frame.index = 0;
      if (step->op == AvroOp::kDefault) {
        frame.outer = *bytes;
        *bytes = AvroBytes(defaults_[step->size]);
      } else if (step->place != AvroStep::kNowhere) {
        if (MaybeBad bad = sink->Open(*step)) return bad;
      }
    }
    // Finds what is read next.
    for (step = nullptr; step == nullptr;) {
      if (depth == 0) return std::nullopt;
      typename Stack::Frame& frame = stack->frames[depth - 1];
      const AvroStep& around = *frame.step;
      const bool shown = around.place != AvroStep::kNowhere;
      bool ends = false;
      if (around.op == AvroOp::kRecord || around.op == AvroOp::kDefault) {
        ends = frame.next == around.count;
        if (!ends) {
          const Child& child = children_[around.first + frame.next++];
          if (shown && !child.key.empty()) sink->Key(child.key);
          step = &steps_[child.step];
        }
      } else {
        if (frame.left == 0) {
          if (MaybeBad bad = BeginBlock(around, bytes, &frame.left, &ends)) return bad;
        }
        if (!ends && frame.left > 0) {
          --frame.left;
          char digits[20];
          std::string_view key;
          if (around.op == AvroOp::kMap) {
            key = bytes->Bytes();
            if (bytes->damaged()) return DamagedAvro();
            if (shown) sink->Key(key);
          } else if (around.count > 1) {
            key = {digits, std::to_chars(digits, digits + sizeof(digits), frame.index++).ptr};
          }
          step = &steps_[Below(around, key, &frame.guess)];
        }
      }
      if (!ends) continue;
      if (around.op == AvroOp::kDefault)
        *bytes = frame.outer;
      else if (shown)
        sink->Close(around);
      --depth;
    }
  }
}

}  // namespace tacit::event
