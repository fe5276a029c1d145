// SPDX-License-Identifier: Apache-2.0
#include "ir/schedule/fingerprint.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/base/overloaded.h"

namespace stowage::ir {

namespace {

// Bump when the bytes below change their meaning: old plans are then refused instead of misread.
constexpr int64_t kGraphStreamVersion = 1;
constexpr int64_t kTargetStreamVersion = 1;

// A canonical byte stream: integers as eight little-endian bytes, strings with their length in
// front, variants with their alternative in front. So no two different objects give one stream.
class ByteStream {
 public:
  void add(int64_t value) {
    auto bits = static_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes_.push_back(static_cast<char>(bits & 0xff));
  }
  void add(double value) {
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    add(std::bit_cast<int64_t>(value));
  }
  void add(llvm::StringRef text) {
    add(static_cast<int64_t>(text.size()));
    bytes_.append(text.begin(), text.end());
  }
  void add(llvm::ArrayRef<int64_t> values) {
    add(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) add(value);
  }
  template <typename Enum>
  void addEnum(Enum value) {
    add(static_cast<int64_t>(value));
  }
  void addCount(size_t count) { add(static_cast<int64_t>(count)); }

  std::string hash() const {
    static constexpr std::array<char, 17> kHex = {"0123456789abcdef"};
    uint64_t digest = XXH3_64bits(bytes_.data(), bytes_.size());
    std::string text = "xxh3:0000000000000000";
    for (size_t i = text.size(); digest != 0; digest >>= 4) text[--i] = kHex[digest & 15];
    return text;
  }

 private:
  std::string bytes_;
};

void addNumber(ByteStream& stream, const std::variant<bool, int64_t, double, ScalarArg>& number) {
  stream.addCount(number.index());
  std::visit(Overloaded{[&](bool flag) { stream.add(int64_t{flag}); },
                        [&](int64_t integer) { stream.add(integer); },
                        [&](double real) { stream.add(real); },
                        [&](const ScalarArg& scalar) { stream.add(int64_t{scalar.scalar.raw()}); }},
             number);
}

void addWrapped(ByteStream& stream, const WrappedNumberArg& number) {
  stream.addEnum(number.dtype);
  stream.addCount(number.value.index());
  std::visit(Overloaded{[&](int64_t integer) { stream.add(integer); },
                        [&](double real) { stream.add(real); },
                        [&](ScalarId scalar) { stream.add(int64_t{scalar.raw()}); }},
             number.value);
}

void addArgument(ByteStream& stream, const Argument& argument) {
  stream.addCount(argument.index());
  std::visit(Overloaded{[&](NoneArg) {}, [&](bool flag) { stream.add(int64_t{flag}); },
                        [&](int64_t integer) { stream.add(integer); },
                        [&](double real) { stream.add(real); },
                        [&](const std::string& text) { stream.add(llvm::StringRef(text)); },
                        [&](const ComplexArg& complex) {
                          stream.add(complex.real);
                          stream.add(complex.imaginary);
                        },
                        [&](const ScalarArg& scalar) { stream.add(int64_t{scalar.scalar.raw()}); },
                        [&](const EnumArg& enumeration) {
                          stream.add(llvm::StringRef(enumeration.kind));
                          stream.add(llvm::StringRef(enumeration.text));
                        },
                        [&](const WrappedNumberArg& number) { addWrapped(stream, number); },
                        [&](const ValueArg& value) { stream.add(int64_t{value.value.raw()}); },
                        [&](const ValueList& values) {
                          stream.addCount(values.size());
                          for (const ValueArg& value : values) {
                            stream.add(int64_t{value.value.raw()});
                          }
                        },
                        [&](const NumberList& numbers) {
                          stream.addCount(numbers.size());
                          for (const auto& number : numbers) addNumber(stream, number);
                        }},
             argument);
}

void addStorage(ByteStream& stream, const Storage& storage) {
  stream.add(llvm::StringRef(storage.name));
  stream.add(storage.bytes.value());
  stream.addEnum(storage.role);
  stream.addEnum(storage.home);
  stream.add(int64_t{storage.persistent});
  stream.add(int64_t{storage.output});
}

void addType(ByteStream& stream, const TensorType& type) {
  stream.addEnum(type.dtype);
  stream.add(llvm::ArrayRef<int64_t>(type.sizes));
  stream.add(llvm::ArrayRef<int64_t>(type.strides));
  stream.add(type.offset);
}

void addValue(ByteStream& stream, const Value& value) {
  stream.add(int64_t{value.storage.raw()});
  addType(stream, value.type);
}

/// Nothing for a step of one process.
void addRanks(ByteStream& stream, const Graph& graph) {
  if (graph.ranks() == 1) return;
  stream.add(graph.ranks());
  for (const Storage& storage : graph.storages()) {
    stream.add(int64_t{storage.shardOf.has_value()});
    if (storage.shardOf) addType(stream, *storage.shardOf);
  }
}

void addNode(ByteStream& stream, const Node& node) {
  // No op has a blank in its name.
  stream.add(llvm::StringRef(node.onHost ? node.op + " on host" : node.op));
  stream.addEnum(node.phase);
  stream.addCount(node.args.size());
  for (const Argument& argument : node.args) addArgument(stream, argument);
  stream.addCount(node.results.size());
  for (const ValueId result : node.results) stream.add(int64_t{result.raw()});
  stream.addCount(node.writes.size());
  for (const Node::Write& write : node.writes) {
    stream.add(int64_t{write.value.raw()});
    stream.add(int64_t{write.whole});
  }
}

}  // namespace

std::string fingerprint(const Graph& graph) {
  ByteStream stream;
  stream.add(kGraphStreamVersion);
  stream.addCount(graph.storages().size());
  for (const Storage& storage : graph.storages()) addStorage(stream, storage);
  stream.addCount(graph.values().size());
  for (const Value& value : graph.values()) addValue(stream, value);
  stream.addCount(graph.scalars().size());
  for (const StepScalar& scalar : graph.scalars()) stream.add(int64_t{scalar.isInteger});
  stream.addCount(graph.nodes().size());
  for (const Node& node : graph.nodes()) addNode(stream, node);
  addRanks(stream, graph);
  return stream.hash();
}

std::string fingerprint(const Target& target) {
  ByteStream stream;
  stream.add(kTargetStreamVersion);
  stream.addEnum(target.device);
  stream.add(target.alignBytes);
  stream.add(int64_t{target.intraOpThreads});
  stream.add(int64_t{target.deterministic});
  stream.add(int64_t{target.computeCapability});
  stream.addCount(target.libraries.size());
  for (const auto& [name, version] : target.libraries) {
    stream.add(llvm::StringRef(name));
    stream.add(llvm::StringRef(version));
  }
  stream.addCount(target.reserved.size());
  for (const ReservedRegion& region : target.reserved) {
    stream.add(llvm::StringRef(region.what));
    stream.add(int64_t{region.stream});
    stream.add(region.bytes.value());
  }
  return stream.hash();
}

}  // namespace stowage::ir
