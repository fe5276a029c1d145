// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/split_list_ops.h"

#include <llvm/ADT/DenseSet.h>

#include <utility>

#include "passes/manage/pass_options.h"
#include "passes/normalise/graph_edit.h"
#include "passes/normalise/list_families.h"

namespace stowage::passes {

namespace {

/// Elements [begin, end) of a list.
struct Bucket {
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Bucket> makeBuckets(const std::vector<int64_t>& elementBytes, Bytes bucketBytes) {
  std::vector<Bucket> buckets;
  int64_t filled = 0;
  for (size_t i = 0; i < elementBytes.size(); ++i) {
    const bool fits = filled + elementBytes[i] <= bucketBytes.value();
    if (buckets.empty() || !fits) {
      buckets.push_back({i, i});
      filled = 0;
    }
    buckets.back().end = i + 1;
    filled += elementBytes[i];
  }
  return buckets;
}

template <typename List>
List slice(const List& list, Bucket bucket) {
  return List(list.begin() + static_cast<ptrdiff_t>(bucket.begin),
              list.begin() + static_cast<ptrdiff_t>(bucket.end));
}

ir::Argument cutArgument(const ir::Argument& argument, Bucket bucket) {
  if (const auto* values = std::get_if<ir::ValueList>(&argument)) {
    return values->empty() ? *values : slice(*values, bucket);
  }
  if (const auto* numbers = std::get_if<ir::NumberList>(&argument)) {
    return numbers->empty() ? *numbers : slice(*numbers, bucket);
  }
  return argument;
}

/// The same op on the elements of one bucket, with the writes of what it still names.
ir::Node cutNode(const ir::Node& node, Bucket bucket) {
  ir::Node part;
  part.op = node.op;
  part.phase = node.phase;
  part.onHost = node.onHost;
  part.scope = node.scope;
  for (const ir::Argument& argument : node.args) {
    part.args.push_back(cutArgument(argument, bucket));
  }
  if (!node.results.empty()) {
    part.results.assign(node.results.begin() + static_cast<ptrdiff_t>(bucket.begin),
                        node.results.begin() + static_cast<ptrdiff_t>(bucket.end));
  }
  llvm::DenseSet<int32_t> named;
  ir::forEachTensorArgument(part, [&](ir::ValueId value) { named.insert(value.raw()); });
  for (const ir::Node::Write& write : node.writes) {
    if (named.contains(write.value.raw())) part.writes.push_back(write);
  }
  return part;
}

}  // namespace

ir::Expected<std::unique_ptr<Pass>> SplitListOps::parse(llvm::StringRef text) {
  SplitListOpsOptions options;
  OptionReader reader("split-list-ops", text);
  options.bucketBytes = reader.readSize("bucket-bytes", options.bucketBytes);
  if (ir::Error error = reader.finish()) return error;
  if (options.bucketBytes.value() == 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "split-list-ops: found bucket-bytes of 0, expected at least 1B");
  }
  return std::make_unique<SplitListOps>(options);
}

std::string SplitListOps::options() const {
  if (options_.bucketBytes == SplitListOpsOptions().bucketBytes) return "";
  return "bucket-bytes=" + printSize(options_.bucketBytes);
}

ir::Expected<PassReport> SplitListOps::run(PassState& state) const {
  const ir::Graph& graph = state.graph;
  const ListFamilies found = findListFamilies(graph);
  std::vector<std::vector<Bucket>> bucketsOf(graph.nodes().size());
  int64_t cut = 0;
  int64_t pieces = 0;
  for (const ListFamily& family : found.families) {
    const std::vector<Bucket> buckets = makeBuckets(family.elementBytes, options_.bucketBytes);
    if (buckets.size() < 2) continue;
    cut += static_cast<int64_t>(family.nodes.size());
    pieces += static_cast<int64_t>(family.nodes.size() * buckets.size());
    for (const ir::NodeId node : family.nodes) bucketsOf[node.index()] = buckets;
  }
  if (cut > 0) {
    std::vector<ir::Node> nodes;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (bucketsOf[i].empty()) nodes.push_back(graph.nodes()[i]);
      for (const Bucket bucket : bucketsOf[i]) nodes.push_back(cutNode(graph.nodes()[i], bucket));
    }
    state.graph = withNodes(graph, std::move(nodes));
  }
  return PassReport{
      .changed = cut > 0,
      .counters = {{"list_ops", cut}, {"pieces", pieces}, {"left_whole", found.leftWhole}}};
}

}  // namespace stowage::passes
