// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nccl_ranks.h"

#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ranks/shard_bytes.h"

namespace stowage::runtime {

namespace {

cudaStream_t currentStream() { return c10::cuda::getCurrentCUDAStream().stream(); }

}  // namespace

ir::Expected<std::unique_ptr<NcclRanks>> NcclRanks::join(const TrainingRanks& ranks) {
  ir::Expected<NcclFunctions> nccl = findNccl();
  if (!nccl) return nccl.takeError();
  const auto failed = [&](NcclStatus status, const char* what) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         std::string(what) + ": NCCL says '" + nccl->statusText(status) + "'");
  };
  NcclId id{};
  if (ranks.rank() == 0) {
    if (const NcclStatus status = nccl->getId(&id)) return failed(status, "making an id for ranks");
  }
  ir::Expected<std::vector<uint8_t>> first = takeFromFirst(
      ranks.between, {reinterpret_cast<const uint8_t*>(id.bytes.data()), id.bytes.size()});
  if (!first) return first.takeError();
  std::memcpy(id.bytes.data(), first->data(), id.bytes.size());
  NcclComm comm = nullptr;
  if (const NcclStatus status = nccl->join(&comm, ranks.count(), id, ranks.rank())) {
    return failed(status, "joining the other ranks' GPUs");
  }
  return std::unique_ptr<NcclRanks>(new NcclRanks(ranks, *nccl, comm));
}

NcclRanks::~NcclRanks() {
  if (!isAborted_) (void)nccl_.leave(comm_);
}

ir::Error NcclRanks::check(NcclStatus status, const char* what) const {
  if (status == 0) return ir::success();
  return ir::makeError(
      ir::ErrorCode::kEnvironment,
      std::string(what) + " of the ranks: NCCL says '" + nccl_.statusText(status) + "'");
}

ir::Error NcclRanks::allGather(const at::Tensor& own, const at::Tensor& all) {
  if (hasEnded()) return ended();
  return check(nccl_.allGather(own.const_data_ptr(), all.mutable_data_ptr(), own.nbytes(),
                               kNcclBytes, comm_, currentStream()),
               "all_gather");
}

ir::Error NcclRanks::allToAll(const at::Tensor& parts, const at::Tensor& received) {
  if (hasEnded()) return ended();
  const size_t each = parts.nbytes() / static_cast<size_t>(count());
  const auto* from = static_cast<const uint8_t*>(parts.const_data_ptr());
  auto* to = static_cast<uint8_t*>(received.mutable_data_ptr());
  cudaStream_t stream = currentStream();
  NcclStatus status = nccl_.beginGroup();
  for (int rank = 0; status == 0 && rank < count(); ++rank) {
    const size_t offset = static_cast<size_t>(rank) * each;
    status = nccl_.send(from + offset, each, kNcclBytes, rank, comm_, stream);
    if (status == 0) {
      status = nccl_.receive(to + offset, each, kNcclBytes, rank, comm_, stream);
    }
  }
  const NcclStatus ended = nccl_.endGroup();
  return check(status != 0 ? status : ended, "all_to_all");
}

void NcclRanks::endWaits() {
  if (!std::exchange(isAborted_, true)) (void)nccl_.abort(comm_);
}

}  // namespace stowage::runtime
