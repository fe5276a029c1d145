// SPDX-License-Identifier: Apache-2.0
#include "tests/support/zip_writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <fstream>

namespace stowage::tests {
namespace {

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string deflateBytes(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

class ZipWriter {
 public:
  explicit ZipWriter(bool wide) : wide_(wide) {}

  void add(const ZipSource& source) {
    const std::string stored = source.deflate ? deflateBytes(source.bytes) : source.bytes;
    const size_t at = out_.size();
    put(out_, 0x04034b50, 4);
    putCommon(source, stored.size(), /*wide=*/false);
    out_ += source.name + stored;
    put(directory_, 0x02014b50, 4);
    put(directory_, 20, 2);
    putDirectoryEntry(source, stored.size(), at);
    ++count_;
  }

  std::string finish() {
    const size_t at = out_.size();
    out_ += directory_;
    if (wide_) putWideEnd(at);
    put(out_, 0x06054b50, 4);
    put(out_, 0, 4);
    put(out_, wide_ ? 0xffff : count_, 2);
    put(out_, wide_ ? 0xffff : count_, 2);
    put(out_, wide_ ? 0xffffffff : directory_.size(), 4);
    put(out_, wide_ ? 0xffffffff : at, 4);
    put(out_, 0, 2);
    return out_;
  }

 private:
  /// Version, flags, method, time, checksum, sizes, length of the name.
  void putCommon(const ZipSource& source, size_t storedBytes, bool wide) {
    std::string& out = wide || inDirectory_ ? directory_ : out_;
    put(out, 20, 2);
    put(out, 0, 2);
    put(out, source.deflate ? 8 : 0, 2);
    put(out, 0, 4);
    put(out, crc32(0, reinterpret_cast<const Bytef*>(source.bytes.data()),
                   static_cast<uInt>(source.bytes.size())), 4);
    put(out, wide ? 0xffffffff : storedBytes, 4);
    put(out, wide ? 0xffffffff : source.bytes.size(), 4);
    put(out, source.name.size(), 2);
    put(out, wide ? 28 : 0, 2);
  }

  void putDirectoryEntry(const ZipSource& source, size_t storedBytes, size_t at) {
    inDirectory_ = true;
    putCommon(source, storedBytes, wide_);
    inDirectory_ = false;
    put(directory_, 0, 2 + 2 + 2 + 4);  // comment, part, attributes
    put(directory_, wide_ ? 0xffffffff : at, 4);
    directory_ += source.name;
    if (!wide_) return;
    put(directory_, 1, 2);
    put(directory_, 24, 2);
    put(directory_, source.bytes.size(), 8);
    put(directory_, storedBytes, 8);
    put(directory_, at, 8);
  }

  void putWideEnd(size_t directoryAt) {
    const size_t at = out_.size();
    put(out_, 0x06064b50, 4);
    put(out_, 44, 8);
    put(out_, 45, 2);
    put(out_, 45, 2);
    put(out_, 0, 8);
    put(out_, count_, 8);
    put(out_, count_, 8);
    put(out_, directory_.size(), 8);
    put(out_, directoryAt, 8);
    put(out_, 0x07064b50, 4);
    put(out_, 0, 4);
    put(out_, at, 8);
    put(out_, 1, 4);
  }

  bool wide_;
  bool inDirectory_ = false;
  std::string out_;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace

std::string writeZip(const std::vector<ZipSource>& sources, bool with64BitFields) {
  ZipWriter writer(with64BitFields);
  for (const ZipSource& source : sources) writer.add(source);
  return writer.finish();
}

std::string writeTemporaryFile(const std::string& name, const std::string& bytes) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace stowage::tests
