// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/communicator.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace stowage::runtime {

namespace {

constexpr size_t kAgreedText = 88;
constexpr size_t kAgreedBytes = sizeof(uint64_t) + kAgreedText;

/// What a rank would agree on.
struct Agreed {
  uint64_t number = 0;
  std::string what;  // as far as it was sent
  bool operator==(const Agreed&) const = default;
};

Agreed readAgreed(const uint8_t* bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes + sizeof(uint64_t));
  return {llvm::support::endian::read64le(bytes), std::string(text, strnlen(text, kAgreedText))};
}

/// Counts as people count, digests as files have them.
std::string numberText(uint64_t number) {
  constexpr uint64_t kMostCounted = 1'000'000'000'000;
  if (number == UINT64_MAX) return "none";
  return number <= kMostCounted ? std::to_string(number)
                                : llvm::utohexstr(number, /*LowerCase=*/true);
}

ir::Error checkBytes(const char* what, size_t found, size_t expected) {
  if (found == expected) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       std::string(what) + ": found " + std::to_string(found) +
                           " bytes, expected " + std::to_string(expected));
}

}  // namespace

ir::Error rankError(int32_t rank, const std::string& what, const Collective& collective) {
  return ir::makeError(ir::ErrorCode::kEnvironment, "rank " + std::to_string(rank) + " " + what +
                                                        " in " + collectiveText(collective));
}

ir::Error checkSame(int32_t rank, const Collective& own, const Collective& theirs) {
  if (own == theirs) return ir::success();
  return rankError(rank, "is at " + collectiveText(theirs) + ", this rank", own);
}

ir::Error Communicator::allGather(llvm::ArrayRef<uint8_t> own, llvm::MutableArrayRef<uint8_t> all) {
  const auto ranks = static_cast<size_t>(count_);
  if (ir::Error error = checkBytes("all_gather into", all.size(), own.size() * ranks)) return error;
  return run(CollectiveKind::kAllGather, std::vector(ranks, own), all);
}

ir::Error Communicator::allToAll(llvm::ArrayRef<uint8_t> parts,
                                 llvm::MutableArrayRef<uint8_t> received) {
  const auto ranks = static_cast<size_t>(count_);
  const size_t part = parts.size() / ranks;
  if (ir::Error error = checkBytes("all_to_all of", parts.size(), part * ranks)) return error;
  if (ir::Error error = checkBytes("all_to_all into", received.size(), parts.size())) return error;
  std::vector<llvm::ArrayRef<uint8_t>> toRanks;
  for (size_t i = 0; i < ranks; ++i) toRanks.push_back(parts.slice(i * part, part));
  return run(CollectiveKind::kAllToAll, toRanks, received);
}

ir::Error Communicator::run(CollectiveKind kind, llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                            llvm::MutableArrayRef<uint8_t> received) {
  if (failure_) return ir::makeError(*failure_);
  const auto own = static_cast<size_t>(rank_);
  const size_t bytes = toRanks[own].size();
  const Collective collective{
      .kind = kind, .number = nextNumber_++, .bytes = static_cast<int64_t>(bytes)};
  std::vector<llvm::MutableArrayRef<uint8_t>> fromRanks;
  for (size_t i = 0; i < toRanks.size(); ++i) {
    fromRanks.push_back(received.slice(i * bytes, bytes));
  }
  if (bytes > 0) std::memcpy(fromRanks[own].data(), toRanks[own].data(), bytes);
  if (ir::Error error = exchange(collective, toRanks, fromRanks)) {
    failure_ = ir::takePayload(std::move(error));
    tellOthers(failure_->text());
    return ir::makeError(*failure_);
  }
  return ir::success();
}

ir::Error Communicator::agree(const std::string& what, uint64_t number) {
  std::array<uint8_t, kAgreedBytes> own{};
  llvm::support::endian::write64le(own.data(), number);
  std::memcpy(own.data() + sizeof number, what.data(), std::min(what.size(), kAgreedText));
  std::vector<uint8_t> all(own.size() * static_cast<size_t>(count_));
  if (ir::Error error = allGather(own, all)) return error;
  const Agreed first = readAgreed(all.data());
  for (int32_t i = 1; i < count_; ++i) {
    const Agreed theirs = readAgreed(all.data() + own.size() * static_cast<size_t>(i));
    if (theirs == first) continue;
    std::string text;
    llvm::raw_string_ostream os(text);
    if (theirs.what != first.what) {
      os << "rank " << i << " is at " << theirs.what << ", expected " << first.what
         << ", where rank 0 is";
    } else {
      os << what << " of rank " << i << " is another one (" << numberText(theirs.number)
         << "), expected that of rank 0 (" << numberText(first.number) << ")";
    }
    os.flush();
    failure_ = ir::PlanError(ir::ErrorCode::kEnvironment, text);
    return ir::makeError(*failure_);
  }
  return ir::success();
}

ir::Expected<bool> Communicator::isOnAll(bool isHere) {
  const std::array<uint8_t, 1> own{isHere ? uint8_t{1} : uint8_t{0}};
  std::vector<uint8_t> all(static_cast<size_t>(count_));
  if (ir::Error error = allGather(own, all)) return error;
  return llvm::all_of(all, [](uint8_t one) { return one == 1; });
}

void Communicator::giveUp(const std::string& reason) {
  if (failure_) return;
  failure_ = ir::PlanError(ir::ErrorCode::kEnvironment, "this rank gave up: " + reason);
  tellOthers(reason);
}

}  // namespace stowage::runtime
