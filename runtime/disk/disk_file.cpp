// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/disk_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/disk/disk_calls.h"
#include "runtime/disk/disk_folder.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kStage = int64_t{1} << 20;  // memory of a thread to copy through
constexpr int kMostThreads = 64;
constexpr int64_t kMostBytes = int64_t{1} << 62;

ir::Error checkOptions(const std::string& folder, Bytes bytes, const DiskFileOptions& options) {
  const auto wrong = [&](const std::string& what, int64_t found, const std::string& expected) {
    return diskError(ir::ErrorCode::kInvalidArgument, folder,
                     what + ": found " + std::to_string(found) + ", expected " + expected);
  };
  const int64_t piece = options.piece.value();
  if (bytes <= Bytes(0) || bytes.value() > kMostBytes) {
    return wrong("bytes of the file", bytes.value(), "1 to " + std::to_string(kMostBytes));
  }
  if (piece <= 0 || piece % kDiskBlock != 0) {
    return wrong("bytes of a piece", piece, "a multiple of " + std::to_string(kDiskBlock));
  }
  if (options.threads < 1 || options.threads > kMostThreads) {
    return wrong("threads", options.threads, "1 to " + std::to_string(kMostThreads));
  }
  return ir::success();
}

std::string rangeText(int64_t offset, int64_t bytes) {
  return std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + " of its file";
}

}  // namespace

void DiskFile::FreeMemory::operator()(uint8_t* memory) const { std::free(memory); }

ir::Expected<std::unique_ptr<DiskFile>> DiskFile::create(const std::string& folder, Bytes bytes,
                                                         const DiskFileOptions& options) {
  if (ir::Error error = checkOptions(folder, bytes, options)) return error;
  const DiskCalls& calls = options.calls != nullptr ? *options.calls : systemCalls();
  ir::Expected<DirectFile> file = DirectFile::create(folder, bytes, calls);
  if (!file) return file.takeError();
  std::unique_ptr<DiskFile> made(new DiskFile(std::move(*file), options));
  if (ir::Error error = made->allocateStages()) return error;
  return made;
}

DiskFile::DiskFile(DirectFile file, const DiskFileOptions& options)
    : file_(std::move(file)),
      options_(options),
      writers_{.stages = nullptr, .pool = PiecePool(options.threads)},
      readers_{.stages = nullptr, .pool = PiecePool(options.threads)} {}

// Its pages are taken when they are first copied through: none, for aligned memory.
ir::Error DiskFile::allocateStages() {
  const auto alignment = static_cast<size_t>(std::max(kDiskBlock, file_.memoryAlignment()));
  const int64_t bytes = options_.threads * kStage;
  for (Lane* lane : {&writers_, &readers_}) {
    lane->stages.reset(
        static_cast<uint8_t*>(std::aligned_alloc(alignment, static_cast<size_t>(bytes))));
    if (!lane->stages) {
      return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                           "could not allocate " + formatBytes(Bytes(bytes)) +
                               " of host memory to copy through to disk '" + file_.folder() + "'");
    }
  }
  return ir::success();
}

ir::Error DiskFile::checkRange(const std::string& verb, int64_t offset, int64_t bytes) const {
  const int64_t all = file_.bytes().value();
  const bool isInside = offset >= 0 && bytes >= 0 && offset <= all && bytes <= all - offset;
  if (isInside && offset % kDiskBlock == 0) return ir::success();
  return diskError(ir::ErrorCode::kInvalidArgument, file_.folder(),
                   "cannot " + verb + " " + rangeText(offset, bytes) + ", expected a multiple of " +
                       std::to_string(kDiskBlock) + " and a range of the file's " +
                       std::to_string(all) + " bytes");
}

int64_t DiskFile::countPieces(int64_t bytes) const {
  return (bytes + options_.piece.value() - 1) / options_.piece.value();
}

DiskFile::Piece DiskFile::pieceAt(int64_t index, int64_t bytes) const {
  const int64_t begin = index * options_.piece.value();
  return {.begin = begin, .bytes = std::min(options_.piece.value(), bytes - begin)};
}

ir::Error DiskFile::write(int64_t offset, const void* data, int64_t bytes) {
  if (ir::Error error = checkRange("write", offset, bytes)) return error;
  const auto* from = static_cast<const uint8_t*>(data);
  const int64_t pieces = countPieces(bytes);
  std::vector<uint64_t> sums(static_cast<size_t>(options_.verify ? pieces : 0));
  if (options_.verify) checksums_.forget(offset, bytes);
  ir::Error failure = writers_.pool.run(pieces, [&](int64_t index, int thread) {
    const Piece piece = pieceAt(index, bytes);
    if (options_.verify) {
      sums[static_cast<size_t>(index)] = checksumOf(from + piece.begin, piece.bytes);
    }
    return writePiece(offset + piece.begin, from + piece.begin, piece.bytes,
                      writers_.stages.get() + thread * kStage);
  });
  if (failure) return failure;
  if (options_.verify && bytes > 0) checksums_.keep(offset, bytes, std::move(sums));
  return ir::success();
}

ir::Error DiskFile::read(int64_t offset, void* data, int64_t bytes) {
  if (ir::Error error = checkRange("read", offset, bytes)) return error;
  PieceChecksums::Found written;
  if (options_.verify && bytes > 0) written = checksums_.find(offset, bytes);
  if (!written.fault.empty()) {
    return diskError(ir::ErrorCode::kInvalidArgument, file_.folder(),
                     "cannot read " + rangeText(offset, bytes) + ": " + written.fault);
  }
  auto* to = static_cast<uint8_t*>(data);
  return readers_.pool.run(countPieces(bytes), [&](int64_t index, int thread) -> ir::Error {
    const Piece piece = pieceAt(index, bytes);
    if (ir::Error error = readPiece(offset + piece.begin, to + piece.begin, piece.bytes,
                                    readers_.stages.get() + thread * kStage)) {
      return error;
    }
    const bool isSame = !options_.verify || checksumOf(to + piece.begin, piece.bytes) ==
                                                written.sums[static_cast<size_t>(index)];
    if (isSame) return ir::success();
    return diskError(
        ir::ErrorCode::kEnvironment, file_.folder(),
        "read other bytes than were written: " + rangeText(offset + piece.begin, piece.bytes));
  });
}

/// How many bytes from the first on may move between `memory` and the disk without a copy.
int64_t DiskFile::directBytes(const uint8_t* memory, int64_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const bool isAligned = address % static_cast<uintptr_t>(file_.memoryAlignment()) == 0;
  return isAligned ? bytes / kDiskBlock * kDiskBlock : 0;
}

ir::Error DiskFile::writePiece(int64_t offset, const uint8_t* from, int64_t bytes,
                               uint8_t* stage) const {
  int64_t done = directBytes(from, bytes);
  if (ir::Error error = file_.write(offset, from, done)) return error;
  while (done < bytes) {
    const int64_t part = std::min(kStage, bytes - done);
    const int64_t whole = roundUp(Bytes(part), kDiskBlock).value();
    std::memcpy(stage, from + done, static_cast<size_t>(part));
    std::memset(stage + part, 0, static_cast<size_t>(whole - part));
    if (ir::Error error = file_.write(offset + done, stage, whole)) return error;
    done += part;
  }
  return ir::success();
}

ir::Error DiskFile::readPiece(int64_t offset, uint8_t* to, int64_t bytes, uint8_t* stage) const {
  int64_t done = directBytes(to, bytes);
  if (ir::Error error = file_.read(offset, to, done)) return error;
  while (done < bytes) {
    const int64_t part = std::min(kStage, bytes - done);
    const int64_t whole = roundUp(Bytes(part), kDiskBlock).value();
    if (ir::Error error = file_.read(offset + done, stage, whole)) return error;
    std::memcpy(to + done, stage, static_cast<size_t>(part));
    done += part;
  }
  return ir::success();
}

}  // namespace stowage::runtime
