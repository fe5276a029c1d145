// SPDX-License-Identifier: Apache-2.0
//
// Runners of several processes that train together: whether they have the same plan, and what is
// whole of which each has a shard.
#include <ATen/ops/empty.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/xxhash.h>

#include <bit>
#include <utility>
#include <vector>

#include "ir/text/printer.h"
#include "runtime/ranks/shard_bytes.h"
#include "runtime/runner/agreed_feed.h"
#include "runtime/runner/runner_impl.h"

namespace stowage::runtime {

namespace {

uint64_t hashOf(const RunnablePlan& plan) {
  return llvm::xxHash64(ir::toText(plan.graph, plan.schedule));
}

/// Any order of mixing does, as all ranks have the same.
uint64_t hashOf(llvm::ArrayRef<ScalarValue> scalars) {
  std::vector<uint64_t> words;
  for (const ScalarValue& scalar : scalars) {
    words.push_back(scalar.isInteger ? 1 : 0);
    words.push_back(std::bit_cast<uint64_t>(scalar.value));
    words.push_back(static_cast<uint64_t>(scalar.integer));
  }
  return llvm::xxHash64(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(words.data()),
                                                words.size() * sizeof(uint64_t)));
}

ir::Error otherRanks(int64_t planned, int64_t found) {
  const std::string text = "the plan is for " + std::to_string(planned) +
                           (planned == 1 ? " rank" : " ranks") + ", this training has " +
                           std::to_string(found);
  return ir::makeError(ir::ErrorCode::kPlanMismatch, text);
}

}  // namespace

std::string fingerprintOf(const RunnablePlan& plan) {
  return "xxh64:" + llvm::utohexstr(hashOf(plan), /*LowerCase=*/true);
}

ir::Expected<llvm::ArrayRef<ScalarValue>> AgreedFeed::join() {
  ir::Expected<llvm::ArrayRef<ScalarValue>> own = own_.join();
  if (!own) return own;
  if (ir::Error error =
          ranks_.agree("a digest of the update's numbers (learning rates)", hashOf(*own))) {
    return error;
  }
  return own;
}

ir::Error Runner::Impl::checkRanks(const RunnerOptions& options) const {
  const int64_t found = ranks == nullptr ? 1 : ranks->count();
  if (plan.graph.ranks() != found) return otherRanks(plan.graph.ranks(), found);
  if (ranks == nullptr) return ir::success();
  if (options.main != nullptr) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "several plans on one state, expected one where several ranks train");
  }
  return ranks->between.agree("the plan", hashOf(plan));
}

ir::Expected<at::Tensor> Runner::Impl::joinedValue(ir::StorageId storage,
                                                   const at::Tensor& own) const {
  const Bytes bytes = ir::wholeBytes(plan.graph.storage(storage));
  at::Tensor whole = at::empty({bytes.value()}, at::kByte);
  if (ir::Error error =
          joinShards(ranks->between, bytesOf(own), {whole.data_ptr<uint8_t>(), whole.nbytes()})) {
    return error;
  }
  return whole;
}

ir::Error Runner::Impl::restoreGenerator(const Checkpoint& checkpoint) const {
  ir::Expected<std::optional<std::vector<uint8_t>>> state =
      checkpoint.generatorOf(ranks == nullptr ? 0 : ranks->rank());
  if (!state) return state.takeError();
  if (!*state) return ir::success();
  if (ir::Error error = checkGeneratorState(generatorDevice(), **state)) {
    const ir::PlanError found = ir::takePayload(std::move(error));
    return checkpoint.badGenerator(found.text());
  }
  return writeGeneratorState(generatorDevice(), **state);
}

}  // namespace stowage::runtime
