// SPDX-License-Identifier: Apache-2.0
#include "ir/costs/cost_table.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <utility>

#include "ir/costs/launch_waits.h"
#include "ir/graph/collectives.h"
#include "ir/text/argument_printer.h"
#include "ir/text/literal.h"

namespace stowage::ir {

namespace {

constexpr std::array<const char*, 3> kSourceNames = {"measured", "roofline", "given"};

// Kernels look at the alignment of a tensor's first byte; storages themselves are aligned further.
constexpr int64_t kKernelAlignment = 16;

class SignatureWriter {
 public:
  SignatureWriter(const Graph& graph, llvm::raw_ostream& os) : graph_(graph), os_(os) {}

  void write(const Node& node) {
    const auto writeValue = [this](ValueId value) { this->writeValue(value); };
    const auto writeScalar = [this](ScalarId) { os_ << '#'; };
    if (node.onHost) os_ << "host ";
    os_ << node.op << '(';
    ArgumentPrinter(os_, {.writeValue = writeValue, .writeScalar = writeScalar, .separator = ","})
        .print(node);
    os_ << ")->(";
    llvm::interleave(
        node.results, [&](ValueId result) { writeResult(result); }, [&] { os_ << ','; });
    os_ << ')';
  }

 private:
  void writeResult(ValueId id) {
    if (id.isValid()) {
      writeValue(id);
    } else {
      os_ << '_';
    }
  }

  // Storages are named by their order of appearance, so that which operands share one is part of
  // the signature while what they are called is not.
  void writeValue(ValueId id) {
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

  const Graph& graph_;
  llvm::raw_ostream& os_;
  llvm::SmallDenseMap<int32_t, size_t, 8> ordinals_;
};

void moveToHost(NodeId node, NodeCosts& costs) {
  costs.hostWork.resize(node.index() + 1);
  OpCost& row = costs.nodes.back();
  costs.hostWork.back() = std::exchange(row.work, Nanoseconds());
  row.temporary = Bytes();
}

/// The table's row has what a rank does by itself, a copy: the link's time takes its place.
void moveToLink(const Graph& graph, NodeId node, NodeCosts& costs) {
  costs.collectiveWork.resize(node.index() + 1);
  OpCost& row = costs.nodes.back();
  Nanoseconds& whole = costs.collectiveWork.back();
  const LinkRate& link = costs.links.betweenRanks;
  whole = row.work;
  if (link.bandwidth > BytesPerSecond(0)) {
    const Bytes bytes = receivedBytes(graph, graph.node(node));
    whole = link.latency + transferTime(bytes, link.bandwidth);
  }
  row.work = Nanoseconds(whole.value() * (1000 - costs.links.besideRanksPermille) / 1000);
}

}  // namespace

Nanoseconds NodeCosts::totalTime() const {
  Nanoseconds sum;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!isCollective(NodeId(i))) sum += time(NodeId(i));
  }
  return sum;
}

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
  SignatureWriter(graph, os).write(graph.node(node));
  return text;
}

Expected<NodeCosts> resolveCosts(const Graph& graph, const CostTable& table, GraphMode mode) {
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
      if (graph.node(id).onHost) moveToHost(id, costs);
      if (isCollective(graph.node(id))) moveToLink(graph, id, costs);
      continue;
    }
    if (missing++ == 0) {
      firstMissing = "n" + std::to_string(i) + " " + graph.describeNode(id) + ": " + signature;
    }
  }
  if (missing > 0) {
    PlanError error(ErrorCode::kInvalidArgument,
                    std::to_string(missing) + " of " + std::to_string(graph.nodes().size()) +
                        " nodes have no row in the table of costs, first " + firstMissing);
    return makeError(
        error.note("the table is of another step, or of this one before it changed: "
                   "profile the step again"));
  }
  if (!costs.hostWork.empty()) costs.hostWork.resize(costs.nodes.size());
  if (!costs.collectiveWork.empty()) costs.collectiveWork.resize(costs.nodes.size());
  costs.scalars = table.scalars;
  costs.waits = findLaunchWaits(graph, {costs.nodes, table.scalars}, mode);
  return costs;
}

}  // namespace stowage::ir
