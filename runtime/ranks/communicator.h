// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a training do together: collectives on bytes in host memory. Every rank has one
// communicator, which one thread uses; all ranks make the same calls, of the same sizes, in the
// same order. Sums are not here: who wants them the same on every rank, whatever the transport,
// gathers the parts and adds them in rank order.
#ifndef STOWAGE_RUNTIME_RANKS_COMMUNICATOR_H_
#define STOWAGE_RUNTIME_RANKS_COMMUNICATOR_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ir/base/error.h"
#include "runtime/ranks/collective.h"

namespace stowage::runtime {

/// A rank that waits longer for another one, without a byte from it, gives up.
constexpr int64_t kPatienceSeconds = 300;

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int32_t rank() const { return rank_; }
  int32_t count() const { return count_; }

  /// `own` of each rank, one after the other in rank order, into `all` on every rank.
  /// Errors: kInvalidArgument if `all` has not count() times the bytes of `own`; kEnvironment, with
  /// the rank and the collective, for a rank that is gone, silent, gave up, or is elsewhere. After
  /// such an error every call returns it.
  ir::Error allGather(llvm::ArrayRef<uint8_t> own, llvm::MutableArrayRef<uint8_t> all);
  /// Both have count() parts of equal size. Part r of `parts` goes to rank r; part r of `received`
  /// is what rank r had for this one. Errors: as allGather.
  ir::Error allToAll(llvm::ArrayRef<uint8_t> parts, llvm::MutableArrayRef<uint8_t> received);
  /// Do all ranks have this number? `what` it is of: "the plan". Errors: as allGather;
  /// kEnvironment, on every rank, with the first that differs from rank 0, in the number or in what
  /// it is of.
  ir::Error agree(const std::string& what, uint64_t number);
  /// Is it so on all ranks? Errors: as allGather.
  ir::Expected<bool> isOnAll(bool isHere);
  /// Has another rank ended, or given up? Between two collectives of which nobody has begun the
  /// next one; the next one then fails with the reason. Does not wait.
  virtual bool isAnyOver() = 0;
  /// What every call fails with since one has failed; nothing before.
  const std::optional<ir::PlanError>& failure() const { return failure_; }
  /// This rank ends: the others fail with `reason`, at once or where they next wait for it. All
  /// later calls fail.
  void giveUp(const std::string& reason);

 protected:
  Communicator(int32_t rank, int32_t count) : rank_(rank), count_(count) {}

  /// `toRanks` and `fromRanks` by rank, each of collective.bytes; those of this rank are left out.
  virtual ir::Error exchange(const Collective& collective,
                             llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                             llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> fromRanks) = 0;
  virtual void tellOthers(const std::string& reason) = 0;

 private:
  ir::Error run(CollectiveKind kind, llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                llvm::MutableArrayRef<uint8_t> received);

  int32_t rank_;
  int32_t count_;
  int64_t nextNumber_ = 0;
  std::optional<ir::PlanError> failure_;
};

/// "rank 2 is gone in collective 17 (...)": all errors about another rank are made here.
ir::Error rankError(int32_t rank, const std::string& what, const Collective& collective);
/// `theirs` is what `rank` said. Success if it is `own`.
ir::Error checkSame(int32_t rank, const Collective& own, const Collective& theirs);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_COMMUNICATOR_H_
