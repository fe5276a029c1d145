// SPDX-License-Identifier: Apache-2.0
#include "ir/cost_table.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <array>

#include "ir/literal.h"
#include "ir/overloaded.h"

namespace stowage::ir {

namespace {

constexpr std::array<const char*, 3> kSourceNames = {"measured", "roofline", "given"};

// Kernels look at the alignment of a tensor's first byte; storages themselves are aligned further.
constexpr int64_t kKernelAlignment = 16;

class SignatureWriter {
 public:
  SignatureWriter(const Graph& graph, const Node& node, llvm::raw_ostream& os)
      : graph_(graph), node_(node), os_(os), pendingWrites_(node.writes) {}

  void write() {
    os_ << node_.op << '(';
    llvm::interleave(
        node_.args, [&](const Argument& argument) { writeArgument(argument); },
        [&] { os_ << ','; });
    os_ << ")->(";
    llvm::interleave(
        node_.results, [&](ValueId result) { writeValue(result); }, [&] { os_ << ','; });
    os_ << ')';
  }

 private:
  // Storages are named by their order of appearance, so that which operands share one is part of
  // the signature while what they are called is not.
  void writeValue(ValueId id) {
    if (!id.isValid()) {
      os_ << '_';
      return;
    }
    const Value& value = graph_.value(id);
    const auto [entry, isNew] = ordinals_.try_emplace(value.storage.raw(), ordinals_.size());
    os_ << '%' << entry->second << ':';
    if (graph_.storage(value.storage).home == Space::kHost) os_ << "host ";
    TensorType type = value.type;
    const int64_t misaligned = type.offset * elementBytes(type.dtype) % kKernelAlignment;
    type.offset = 0;
    writeType(os_, type);
    if (misaligned != 0) os_ << '+' << misaligned;
  }

  void writeOperand(ValueId id) {
    auto* write = llvm::find_if(pendingWrites_,
                                [&](const Node::Write& pending) { return pending.value == id; });
    if (id.isValid() && write != pendingWrites_.end()) {
      os_ << (write->whole ? "out " : "inout ");
      pendingWrites_.erase(write);
    }
    writeValue(id);
  }

  void writeArgument(const Argument& argument) {
    std::visit(Overloaded{[&](NoneArg) { os_ << "none"; },
                          [&](bool flag) { os_ << (flag ? "true" : "false"); },
                          [&](int64_t integer) { os_ << integer; },
                          [&](double number) { writeDouble(os_, number); },
                          [&](const std::string& text) { writeQuoted(os_, text); },
                          [&](const ComplexArg& complex) { writeComplex(complex); },
                          [&](const ScalarArg&) { os_ << '#'; },
                          [&](const EnumArg& enumeration) {
                            os_ << enumeration.kind << '(' << enumeration.text << ')';
                          },
                          [&](const WrappedNumberArg& number) { writeWrapped(number); },
                          [&](const ValueArg& value) { writeOperand(value.value); },
                          [&](const ValueList& values) {
                            os_ << '[';
                            llvm::interleave(
                                values, [&](const ValueArg& value) { writeOperand(value.value); },
                                [&] { os_ << ','; });
                            os_ << ']';
                          },
                          [&](const NumberList& numbers) { writeNumbers(numbers); }},
               argument);
  }

  void writeComplex(const ComplexArg& complex) {
    os_ << "complex(";
    writeDouble(os_, complex.real);
    os_ << ',';
    writeDouble(os_, complex.imaginary);
    os_ << ')';
  }

  void writeWrapped(const WrappedNumberArg& number) {
    os_ << "wrapped(" << dtypeName(number.dtype) << ' ';
    std::visit(
        Overloaded{[&](int64_t integer) { os_ << integer; },
                   [&](double real) { writeDouble(os_, real); }, [&](ScalarId) { os_ << '#'; }},
        number.value);
    os_ << ')';
  }

  void writeNumbers(const NumberList& numbers) {
    os_ << '[';
    llvm::interleave(
        numbers,
        [&](const auto& element) {
          std::visit(Overloaded{[&](bool flag) { os_ << (flag ? "true" : "false"); },
                                [&](int64_t integer) { os_ << integer; },
                                [&](double number) { writeDouble(os_, number); },
                                [&](const ScalarArg&) { os_ << '#'; }},
                     element);
        },
        [&] { os_ << ','; });
    os_ << ']';
  }

  const Graph& graph_;
  const Node& node_;
  llvm::raw_ostream& os_;
  llvm::SmallVector<Node::Write, 1> pendingWrites_;
  llvm::DenseMap<int32_t, size_t> ordinals_;
};

}  // namespace

const char* costSourceName(CostSource source) { return kSourceNames[static_cast<size_t>(source)]; }

std::optional<CostSource> findCostSource(llvm::StringRef name) {
  for (size_t i = 0; i < kSourceNames.size(); ++i) {
    if (name == kSourceNames[i]) return static_cast<CostSource>(i);
  }
  return std::nullopt;
}

std::string nodeSignature(const Graph& graph, NodeId node) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SignatureWriter(graph, graph.node(node), os).write();
  return text;
}

Expected<NodeCosts> resolveCosts(const Graph& graph, const CostTable& table) {
  NodeCosts costs{.links = table.links, .source = table.source};
  costs.nodes.reserve(graph.nodes().size());
  size_t missing = 0;
  std::string firstMissing;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const NodeId id(i);
    const std::string signature = nodeSignature(graph, id);
    const auto row = table.bySignature.find(signature);
    if (row != table.bySignature.end()) {
      costs.nodes.push_back(row->second);
      continue;
    }
    if (missing++ == 0) {
      firstMissing = "n" + std::to_string(i) + " " + graph.describeNode(id) + ": " + signature;
    }
  }
  if (missing > 0) {
    return makeError(ErrorCode::kInvalidArgument,
                     "the cost table has no row for " + std::to_string(missing) + " of " +
                         std::to_string(graph.nodes().size()) + " nodes, first " + firstMissing);
  }
  return costs;
}

}  // namespace stowage::ir
