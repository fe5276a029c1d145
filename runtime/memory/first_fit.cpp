// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/first_fit.h"

#include <algorithm>

namespace stowage::runtime {

std::optional<int64_t> FirstFit::take(Bytes bytes, Bytes limit) {
  // An empty block still has a place of its own: addresses tell blocks apart.
  const int64_t size = std::max(roundUp(bytes, unit_).value(), unit_);
  int64_t offset = 0;
  auto next = blocks_.begin();
  for (; next != blocks_.end() && next->offset - offset < size; ++next) {
    offset = next->offset + next->bytes;
  }
  if (size > limit.value() || offset > limit.value() - size) return std::nullopt;
  blocks_.insert(next, {offset, size});
  peak_ = std::max(peak_, top());
  return offset;
}

bool FirstFit::release(int64_t offset) {
  return std::erase_if(blocks_, [&](const Block& block) { return block.offset == offset; }) > 0;
}

bool FirstFit::releaseEndingAt(int64_t end) {
  return std::erase_if(blocks_,
                       [&](const Block& block) { return block.offset + block.bytes == end; }) > 0;
}

Bytes FirstFit::top() const {
  return blocks_.empty() ? Bytes(0) : Bytes(blocks_.back().offset + blocks_.back().bytes);
}

Bytes FirstFit::bytesInUse() const {
  Bytes sum;
  for (const Block& block : blocks_) sum += Bytes(block.bytes);
  return sum;
}

}  // namespace stowage::runtime
