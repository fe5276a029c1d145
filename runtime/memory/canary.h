// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of an arena were ever written, measured instead of asserted: before the first step an
// arena is filled with a pattern that depends on the place; afterwards the highest byte that lost
// it is the high-water mark, and bytes that no residency and no temporary covers must all have kept
// it. A byte that is written with its own pattern looks untouched; the mark may be low by as much.
// Not here: who wrote.
#ifndef STOWAGE_RUNTIME_MEMORY_CANARY_H_
#define STOWAGE_RUNTIME_MEMORY_CANARY_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/interval.h"
#include "ir/base/units.h"

namespace stowage::runtime {

/// What an arena is filled with, over and over from its base. Its length divides by no alignment
/// but eight, so that bytes copied from elsewhere in an arena do not look untouched.
llvm::ArrayRef<uint8_t> canaryPattern();

/// Reads bytes of an arena, which may lie on another device.
using ReadArena = llvm::function_ref<ir::Error(int64_t offset, llvm::MutableArrayRef<uint8_t>)>;

/// The high-water mark: bytes from the arena's begin to the end of the highest one that changed.
/// Errors: the reader's.
ir::Expected<Bytes> findHighWaterMark(Bytes arena, ReadArena read);

/// The first byte outside of `planned` that changed. Errors: the reader's.
ir::Expected<std::optional<int64_t>> findStrayByte(Bytes arena,
                                                   llvm::ArrayRef<ir::ByteRange> planned,
                                                   ReadArena read);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_CANARY_H_
