// SPDX-License-Identifier: Apache-2.0
//
// Writes a graph anew with the nodes of row regions repeated per block: row views of operands, one
// storage per block for what stays inside, copies into the rows of what leaves, and the parts of a
// loss that are not per row.
#ifndef STOWAGE_PASSES_NORMALISE_ROW_BLOCK_WRITER_H_
#define STOWAGE_PASSES_NORMALISE_ROW_BLOCK_WRITER_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/StringSet.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/normalise/row_regions.h"

namespace stowage::passes {

class RowBlockWriter {
 public:
  /// `graph` must outlive it.
  explicit RowBlockWriter(const ir::Graph& graph);

  /// A node outside of all regions.
  void copy(ir::NodeId node) { nodes_.push_back(graph_.node(node)); }
  /// All nodes from the region's first member to its last. At least two ranges.
  void write(const RowRegion& region, llvm::ArrayRef<RowRange> ranges);
  ir::Graph finish() &&;

 private:
  /// What a loss needs around the blocks (row_block_loss.cpp).
  struct Loss {
    ir::NodeId node;
    ir::ValueId targets;  // 0 for each row that counts
    ir::ValueId losses;   // one a row
    ir::ValueId standIn;  // a loss of the right shape, before there is one
  };

  void writeBefore(const RowRegion& region);
  void openStorages(const RowRegion& region);
  void writeBlock(const RowRegion& region, RowRange range);
  void writeMember(const RowMember& member, RowRange range);
  void copyOut(const RowRegion& region, RowRange range);
  const RowMember& makerOf(const RowRegion& region, ir::StorageId storage) const;
  bool isReadInside(const RowRegion& region, ir::StorageId storage) const;
  bool isCopiedDirectly(const RowRegion& region, const RowMember& maker) const;

  void openLoss(const RowMember& member);
  void writeLossBlock(const Loss& loss, const RowMember& member, RowRange range);
  void closeLoss(const Loss& loss);

  /// The rows of a value: of the block's storage if a member made it, else in place.
  ir::ValueId rowsOf(ir::ValueId value, size_t rowDimensions, RowRange range);
  ir::ValueId withoutOnes(ir::ValueId value, size_t dimensions);
  /// A view of the storage that `value` lies in by now.
  ir::ValueId viewOf(ir::ValueId value, ir::TensorType type, const std::string& suffix);
  /// A value in a storage of its own.
  ir::ValueId makeValue(ir::ValueId like, ir::TensorType type, const std::string& suffix,
                        const std::string& label);
  ir::Node nodeLike(const ir::Node& like, const char* op, std::vector<ir::Argument> args,
                    std::vector<ir::ValueId> results) const;
  std::string uniqueValueName(std::string name);
  std::string uniqueStorageName(std::string name);
  std::string blockSuffix() const { return ".rows" + std::to_string(block_ + 1); }
  std::string blockLabel() const;

  const ir::Graph& graph_;
  ir::GraphBuilder builder_;
  std::vector<ir::Node> nodes_;
  llvm::StringSet<> valueNames_, storageNames_;
  std::vector<std::vector<ir::ValueId>> valuesOf_;  // by storage
  std::map<std::pair<int32_t, size_t>, ir::ValueId> withoutOnes_;
  // Of the region that is being written.
  std::vector<Loss> losses_;
  llvm::DenseMap<int32_t, ir::StorageId> blockStorage_;  // of this block, by storage of a member
  llvm::DenseMap<int32_t, ir::ValueId> blockValue_;      // of this block, by value
  size_t block_ = 0;
  size_t blocks_ = 0;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ROW_BLOCK_WRITER_H_
