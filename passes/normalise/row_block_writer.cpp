// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/row_block_writer.h"

#include <llvm/ADT/STLExtras.h>

#include <utility>

namespace stowage::passes {

namespace {

// _to_copy is a copy_ into a new tensor: the same kernel writes the rows of an old one.
bool isConversion(const ir::Node& node) { return node.op == "aten._to_copy.default"; }

ir::ValueId firstCutOperand(const ir::Graph& graph, const RowMember& member) {
  const ir::Node& node = graph.node(member.node);
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (member.rows.rowDimensions[i] > 0) return std::get<ir::ValueArg>(node.args[i]).value;
  }
  return ir::ValueId();
}

/// In a block the rows are one dimension.
ir::Argument blockDimension(const ir::Node& node, const RowMember& member) {
  const ir::RowOp& op = ir::lookUpRowOp(node.op);
  const auto along = std::get<int64_t>(node.args[static_cast<size_t>(op.dimension)]);
  return along < 0 ? along : along - static_cast<int64_t>(member.rows.resultDimensions) + 1;
}

}  // namespace

RowBlockWriter::RowBlockWriter(const ir::Graph& graph) : graph_(graph), builder_(graph) {
  for (const ir::Storage& storage : graph.storages()) storageNames_.insert(storage.name);
  valuesOf_.resize(graph.storages().size());
  for (size_t i = 0; i < graph.values().size(); ++i) {
    valueNames_.insert(graph.values()[i].name);
    valuesOf_[graph.values()[i].storage.index()].push_back(ir::ValueId(i));
  }
}

ir::Graph RowBlockWriter::finish() && {
  for (ir::Node& node : nodes_) builder_.addNode(std::move(node));
  return std::move(builder_).finish();
}

void RowBlockWriter::write(const RowRegion& region, llvm::ArrayRef<RowRange> ranges) {
  losses_.clear();
  blocks_ = ranges.size();
  writeBefore(region);
  openStorages(region);
  for (block_ = 0; block_ < ranges.size(); ++block_) writeBlock(region, ranges[block_]);
  for (const Loss& loss : losses_) closeLoss(loss);
  for (const ir::NodeId node : region.after) copy(node);
}

/// Nodes in between that need nothing of the region. A loss opens as soon as its node has come:
/// its targets are there.
void RowBlockWriter::writeBefore(const RowRegion& region) {
  size_t next = 0;
  const auto openLosses = [&](ir::NodeId until) {
    for (; next < region.members.size() && region.members[next].node < until; ++next) {
      if (region.members[next].rows.kind == ir::RowKind::kLossForward) {
        openLoss(region.members[next]);
      }
    }
  };
  for (const ir::NodeId node : region.before) {
    copy(node);
    if (!llvm::is_contained(region.standIns, node)) continue;
    ir::Node reader = std::move(nodes_.back());
    nodes_.pop_back();
    openLosses(node);
    auto& argument = std::get<ir::ValueArg>(reader.args[0]);
    const ir::TensorType& type = graph_.value(argument.value).type;
    for (const Loss& loss : losses_) {
      if (builder_.value(loss.standIn).type == type) argument.value = loss.standIn;
    }
    nodes_.push_back(std::move(reader));
  }
  openLosses(ir::NodeId(region.members.back().node.index() + 1));
}

/// What leaves takes its place, or gets bytes that the blocks fill.
void RowBlockWriter::openStorages(const RowRegion& region) {
  // Made outside, so it is there: the first member has nothing else to read.
  const ir::ValueId like = firstCutOperand(graph_, region.members.front());
  for (const LeavingStorage& leaving : region.leaving) {
    if (leaving.place.isValid()) {
      for (const ir::ValueId value : valuesOf_[leaving.storage.index()]) {
        builder_.value(value).storage =
            builder_.value(valuesOf_[leaving.place.index()].front()).storage;
      }
      continue;
    }
    const ir::Node& maker = graph_.node(makerOf(region, leaving.storage).node);
    const ir::TensorType& type = graph_.value(maker.results[0]).type;
    ir::NumberList sizes(type.sizes.begin(), type.sizes.end());
    nodes_.push_back(nodeLike(maker, "aten.new_empty.default",
                              {ir::ValueArg{like}, std::move(sizes),
                               ir::EnumArg{.kind = "dtype", .text = ir::dtypeName(type.dtype)},
                               ir::NoneArg{}, ir::NoneArg{}, ir::NoneArg{}},
                              {maker.results[0]}));
  }
}

void RowBlockWriter::writeBlock(const RowRegion& region, RowRange range) {
  blockStorage_.clear();
  blockValue_.clear();
  size_t loss = 0;
  for (const RowMember& member : region.members) {
    if (member.rows.kind == ir::RowKind::kLossForward) {
      writeLossBlock(losses_[loss++], member, range);
    } else if (!isCopiedDirectly(region, member)) {
      writeMember(member, range);
    }
  }
  copyOut(region, range);
}

void RowBlockWriter::writeMember(const RowMember& member, RowRange range) {
  ir::Node node = graph_.node(member.node);
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (i < member.rows.droppedDimensions.size() && member.rows.droppedDimensions[i] > 0) {
      auto& argument = std::get<ir::ValueArg>(node.args[i]);
      argument.value = withoutOnes(argument.value, member.rows.droppedDimensions[i]);
    }
    if (member.rows.rowDimensions[i] == 0) continue;
    auto& argument = std::get<ir::ValueArg>(node.args[i]);
    argument.value = rowsOf(argument.value, member.rows.rowDimensions[i], range);
  }
  if (member.rows.kind == ir::RowKind::kLastDim) {
    const ir::RowOp& op = ir::lookUpRowOp(node.op);
    node.args[static_cast<size_t>(op.dimension)] = blockDimension(node, member);
  }
  const ir::ValueId whole = node.results[0];
  const ir::ValueId made =
      makeValue(whole, copyOfRows(graph_.value(whole).type, member.rows.resultDimensions, range),
                blockSuffix(), blockLabel());
  blockStorage_[graph_.value(whole).storage.raw()] = builder_.value(made).storage;
  blockValue_[whole.raw()] = made;
  node.results[0] = made;
  nodes_.push_back(std::move(node));
}

/// Last in a block, when nothing of it reads an operand any more whose place a result takes.
void RowBlockWriter::copyOut(const RowRegion& region, RowRange range) {
  for (const LeavingStorage& leaving : region.leaving) {
    const RowMember& maker = makerOf(region, leaving.storage);
    const ir::Node& node = graph_.node(maker.node);
    const ir::ValueId whole = node.results[0];
    ir::ValueId source = blockValue_.lookup(whole.raw());
    if (isCopiedDirectly(region, maker)) {
      source =
          rowsOf(std::get<ir::ValueArg>(node.args[0]).value, maker.rows.rowDimensions[0], range);
    }
    const ir::ValueId target =
        viewOf(whole, viewRows(graph_.value(whole).type, maker.rows.resultDimensions, range),
               blockSuffix() + ".out");
    ir::Node copied = nodeLike(node, "aten.copy_.default",
                               {ir::ValueArg{target}, ir::ValueArg{source}, false}, {target});
    copied.writes.push_back({.value = target});
    nodes_.push_back(std::move(copied));
  }
}

const RowMember& RowBlockWriter::makerOf(const RowRegion& region, ir::StorageId storage) const {
  return *llvm::find_if(region.members, [&](const RowMember& member) {
    return graph_.value(graph_.node(member.node).results[0]).storage == storage;
  });
}

bool RowBlockWriter::isReadInside(const RowRegion& region, ir::StorageId storage) const {
  return llvm::any_of(region.members, [&](const RowMember& member) {
    bool reads = false;
    ir::forEachTensorArgument(graph_.node(member.node), [&](ir::ValueId value) {
      reads = reads || graph_.value(value).storage == storage;
    });
    return reads;
  });
}

bool RowBlockWriter::isCopiedDirectly(const RowRegion& region, const RowMember& maker) const {
  const ir::Node& node = graph_.node(maker.node);
  if (!isConversion(node)) return false;
  const ir::StorageId storage = graph_.value(node.results[0]).storage;
  const ir::StorageId source = graph_.value(std::get<ir::ValueArg>(node.args[0]).value).storage;
  bool leaves = false;
  for (const LeavingStorage& leaving : region.leaving) {
    // Copies into places come in some order: none reads a place.
    if (leaving.place == source) return false;
    leaves = leaves || leaving.storage == storage;
  }
  return leaves && !isReadInside(region, storage);
}

ir::ValueId RowBlockWriter::rowsOf(ir::ValueId value, size_t rowDimensions, RowRange range) {
  if (const auto known = blockValue_.find(value.raw()); known != blockValue_.end()) {
    return known->second;
  }
  const ir::TensorType& type = graph_.value(value).type;
  const auto made = blockStorage_.find(graph_.value(value).storage.raw());
  ir::ValueId rows;
  if (made == blockStorage_.end()) {
    rows = viewOf(value, viewRows(type, rowDimensions, range), blockSuffix());
  } else {
    rows = builder_.addValue({.name = uniqueValueName(graph_.value(value).name + blockSuffix()),
                              .storage = made->second,
                              .type = copyOfRows(type, rowDimensions, range)});
  }
  blockValue_[value.raw()] = rows;
  return rows;
}

/// One view for all blocks.
ir::ValueId RowBlockWriter::withoutOnes(ir::ValueId value, size_t dimensions) {
  const auto [entry, isNew] = withoutOnes_.try_emplace({value.raw(), dimensions});
  if (isNew) {
    entry->second =
        viewOf(value, dropDimensions(graph_.value(value).type, dimensions), ".each_row");
  }
  return entry->second;
}

ir::ValueId RowBlockWriter::viewOf(ir::ValueId value, ir::TensorType type,
                                   const std::string& suffix) {
  return builder_.addValue({.name = uniqueValueName(graph_.value(value).name + suffix),
                            .storage = builder_.value(value).storage,
                            .type = std::move(type)});
}

ir::ValueId RowBlockWriter::makeValue(ir::ValueId like, ir::TensorType type,
                                      const std::string& suffix, const std::string& label) {
  const ir::Value& model = graph_.value(like);
  const std::string base = graph_.storage(model.storage).name;
  const ir::StorageId storage =
      builder_.addStorage({.name = uniqueStorageName(base + label), .bytes = type.extentBytes()});
  return builder_.addValue(
      {.name = uniqueValueName(model.name + suffix), .storage = storage, .type = std::move(type)});
}

ir::Node RowBlockWriter::nodeLike(const ir::Node& like, const char* op,
                                  std::vector<ir::Argument> args,
                                  std::vector<ir::ValueId> results) const {
  return {.op = op,
          .args = std::move(args),
          .results = {results.begin(), results.end()},
          .phase = like.phase,
          .scope = like.scope};
}

std::string RowBlockWriter::uniqueValueName(std::string name) {
  while (!valueNames_.insert(name).second) name += "_";
  return name;
}

std::string RowBlockWriter::uniqueStorageName(std::string name) {
  while (!storageNames_.insert(name).second) name += "_";
  return name;
}

std::string RowBlockWriter::blockLabel() const {
  return "[rows " + std::to_string(block_ + 1) + "/" + std::to_string(blocks_) + "]";
}

}  // namespace stowage::passes
