// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/archive_mutator.h"

#include <zlib.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/json_mutator.h"

namespace stowage::tests {

namespace {

constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint32_t kCentralMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;

uint64_t numberAt(const std::string& text, size_t at, size_t bytes) {
  if (at + bytes > text.size()) throw std::runtime_error("no archive of stored entries");
  uint64_t number = 0;
  for (size_t i = bytes; i-- > 0;) {
    number = number << 8U | static_cast<uint8_t>(text[at + i]);
  }
  return number;
}

void append(std::string& text, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

/// What the zip says about an entry: by itself what is true.
struct Entry {
  std::string name;
  std::string bytes;
  uint64_t method = 0;
  uint64_t flags = 0;
  int64_t extraSize = 0;    // added to the sizes that are stated
  int64_t extraOffset = 0;  // added to the place that is stated
  bool wrongChecksum = false;
  bool otherNameInside = false;
};

std::vector<Entry> readEntries(const std::string& archive) {
  std::vector<Entry> entries;
  const size_t end = archive.rfind("PK\x05\x06");
  if (end == std::string::npos) throw std::runtime_error("no archive");
  size_t at = numberAt(archive, end + 16, 4);
  for (uint64_t left = numberAt(archive, end + 10, 2); left > 0; --left) {
    const size_t size = numberAt(archive, at + 20, 4);
    const size_t nameSize = numberAt(archive, at + 28, 2);
    const size_t local = numberAt(archive, at + 42, 4);
    const size_t data =
        local + kLocalBytes + numberAt(archive, local + 26, 2) + numberAt(archive, local + 28, 2);
    entries.push_back({.name = archive.substr(at + kCentralBytes, nameSize),
                       .bytes = archive.substr(data, size)});
    at += kCentralBytes + nameSize + numberAt(archive, at + 30, 2) + numberAt(archive, at + 32, 2);
  }
  return entries;
}

std::string deflateRaw(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// What both headers of an entry share, from the version that is needed to the lengths.
std::string commonFields(const Entry& entry, const std::string& packed) {
  const auto checksum =
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()),
                                  static_cast<uInt>(entry.bytes.size())));
  std::string text;
  append(text, 20, 2);
  append(text, entry.flags, 2);
  append(text, entry.method, 2);
  append(text, 0, 4);  // no time
  append(text, entry.wrongChecksum ? checksum + 1 : checksum, 4);
  append(text, packed.size() + static_cast<uint64_t>(entry.extraSize), 4);
  append(text, entry.bytes.size() + static_cast<uint64_t>(entry.extraSize), 4);
  append(text, entry.name.size(), 2);
  return text;
}

std::string writeEntries(const std::vector<Entry>& entries, int64_t extraCount) {
  std::string archive;
  std::string directory;
  for (const Entry& entry : entries) {
    const uint64_t place = archive.size();
    const std::string packed = entry.method == 8 ? deflateRaw(entry.bytes) : entry.bytes;
    const std::string fields = commonFields(entry, packed);
    append(archive, kLocalMark, 4);
    archive += fields;
    // As libtorch does, contents begin at a multiple of 64.
    const size_t padding = 64 - (archive.size() + 2 + entry.name.size()) % 64;
    append(archive, padding, 2);
    archive += entry.otherNameInside ? std::string(entry.name.size(), 'x') : entry.name;
    archive += std::string(padding, '\0');
    archive += packed;
    append(directory, kCentralMark, 4);
    append(directory, 20, 2);
    directory += fields;
    append(directory, 0, 2 + 2 + 2 + 2 + 4);
    append(directory, place + static_cast<uint64_t>(entry.extraOffset), 4);
    directory += entry.name;
  }
  const uint64_t begin = archive.size();
  archive += directory;
  append(archive, kEndMark, 4);
  append(archive, 0, 4);
  for (int i = 0; i < 2; ++i) {
    append(archive, entries.size() + static_cast<uint64_t>(extraCount), 2);
  }
  append(archive, directory.size(), 4);
  append(archive, begin, 4);
  append(archive, 0, 2);
  return archive;
}

void changeContents(std::string& bytes, Random& random, std::string& kind) {
  const auto last = static_cast<int64_t>(bytes.size());
  switch (random.between(0, 3)) {
    case 0:
      kind += "contents-cut ";
      bytes.resize(static_cast<size_t>(random.between(0, last)));
      return;
    case 1:
      kind += "contents-longer ";
      bytes += std::string(static_cast<size_t>(random.uneven(1, 4096)), 'z');
      return;
    case 2:
      kind += "contents-replaced ";
      bytes = hostileText(random);
      return;
    default:
      kind += "contents-changed ";
      for (int64_t i = random.between(1, 4); i > 0 && last > 0; --i) {
        bytes[static_cast<size_t>(random.between(0, last - 1))] = static_cast<char>(random.bits());
      }
  }
}

void changeEnvelope(std::vector<Entry>& entries, int64_t& extraCount, Random& random,
                    std::string& kind) {
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(entries.size()) - 1));
  Entry& entry = entries[at];
  static constexpr std::array<int64_t, 8> kExtra = {1,    -1,         8,         INT32_MAX,
                                                    4096, -INT32_MAX, INT64_MAX, 65535};
  switch (random.between(0, 9)) {
    case 0:
      kind += "entry-dropped ";
      entries.erase(entries.begin() + static_cast<ptrdiff_t>(at));
      return;
    case 1:
      kind += "entry-doubled ";
      entries.push_back(Entry(entry));
      return;
    case 2:
      kind += "entry-renamed ";
      entry.name = random.chance(50) ? "archive/" + hostileText(random) : hostileText(random);
      entry.name.resize(std::min<size_t>(entry.name.size(), 60'000));
      return;
    case 3:
      kind += "entry-size ";
      entry.extraSize = random.pick(kExtra);
      return;
    case 4:
      kind += "entry-place ";
      entry.extraOffset = random.pick(kExtra);
      return;
    case 5:
      kind += "entry-method ";
      entry.method = static_cast<uint64_t>(random.between(1, 99));
      return;
    case 6:
      kind += "entry-flags ";
      entry.flags = static_cast<uint64_t>(random.between(0, 65535));
      return;
    case 7:
      kind += "entry-checksum ";
      entry.wrongChecksum = true;
      return;
    case 8:
      kind += "entry-other-name ";
      entry.otherNameInside = true;
      return;
    default:
      kind += "entry-count ";
      extraCount = random.pick(kExtra);
  }
}

/// A tensor of the program with other sizes, and the strides that go with them, or another element
/// type: all else agrees.
bool changeTensor(Json& program, Random& random, std::string& kind) {
  const Json::json_pointer place("/graph_module/graph/tensor_values");
  if (!program.contains(place) || program[place].empty()) return false;
  auto tensor = program[place].begin();
  std::advance(tensor, random.between(0, static_cast<int64_t>(program[place].size()) - 1));
  if (random.chance(25)) {
    kind += "tensor-dtype ";
    (*tensor)["dtype"] = random.between(1, 13);
    return true;
  }
  kind += "tensor-sizes ";
  std::vector<int64_t> sizes;
  for (const Json& size : (*tensor)["sizes"]) sizes.push_back(size["as_int"].get<int64_t>());
  if (sizes.empty() || random.chance(20)) {
    sizes = {random.between(0, 9)};
  } else {
    auto& size =
        sizes[static_cast<size_t>(random.between(0, static_cast<int64_t>(sizes.size()) - 1))];
    size = random.chance(70) ? random.between(0, 9) : otherNumber(size, random);
  }
  Json stated = Json::array();
  Json strides = Json::array();
  uint64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    stated.insert(stated.begin(), Json{{"as_int", sizes[i]}});
    strides.insert(strides.begin(), Json{{"as_int", static_cast<int64_t>(stride)}});
    stride *= static_cast<uint64_t>(sizes[i]);
  }
  (*tensor)["sizes"] = stated;
  (*tensor)["strides"] = strides;
  return true;
}

bool isJson(const Entry& entry) { return !entry.bytes.empty() && entry.bytes.front() == '{'; }

void changeEntry(Entry& entry, Random& random, std::string& kind) {
  // What an earlier change nested too deeply is not for this program's own stack.
  const bool isDeep = entry.bytes.find(std::string(50, '[')) != std::string::npos;
  Json document = isDeep ? Json() : Json::parse(entry.bytes, nullptr, /*allow_exceptions=*/false);
  if (isDeep || document.is_discarded()) return changeContents(entry.bytes, random, kind);
  if (random.chance(40) && changeTensor(document, random, kind)) {
    entry.bytes = document.dump();
    return;
  }
  entry.bytes = mutateJson(document, random, kind);
}

}  // namespace

std::string mutateArchive(const std::string& archive, Random& random, std::string& kind) {
  std::vector<Entry> entries = readEntries(archive);
  int64_t extraCount = 0;
  const int64_t draw = random.between(0, 99);
  if (draw < 75) {
    std::vector<size_t> documents;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (isJson(entries[i])) documents.push_back(i);
    }
    // The program comes first.
    Entry& entry = entries[random.chance(70) ? documents.front() : random.pick(documents)];
    for (int64_t i = random.chance(80) ? 1 : 2; i > 0; --i) changeEntry(entry, random, kind);
    if (random.chance(10)) entry.method = 8;
  } else if (draw < 85) {
    const auto at = random.between(0, static_cast<int64_t>(entries.size()) - 1);
    changeContents(entries[static_cast<size_t>(at)].bytes, random, kind);
  } else if (draw < 96) {
    changeEnvelope(entries, extraCount, random, kind);
  } else {
    std::string text = archive;
    changeContents(text, random, kind);
    return text;
  }
  return writeEntries(entries, extraCount);
}

std::string mutateSafetensors(const std::string& file, Random& random, std::string& kind) {
  constexpr size_t kLengthBytes = 8;
  const auto headerBytes = static_cast<size_t>(numberAt(file, 0, kLengthBytes));
  std::string header = file.substr(kLengthBytes, headerBytes);
  std::string data = file.substr(kLengthBytes + headerBytes);
  uint64_t length = 0;
  const int64_t draw = random.between(0, 99);
  if (draw < 70) {
    Json document = Json::parse(header);
    // Sums would refuse every change before anything else is looked at.
    if (document.contains("__metadata__") && random.chance(80)) {
      document["__metadata__"].erase("stowage.xxh64");
    }
    header = mutateJson(document, random, kind);
    length = header.size();
  } else if (draw < 90) {
    changeContents(data, random, kind);
    length = header.size();
  } else {
    kind += "length ";
    length = static_cast<uint64_t>(otherNumber(static_cast<int64_t>(headerBytes), random));
  }
  std::string changed;
  append(changed, length, kLengthBytes);
  return changed + header + data;
}

}  // namespace stowage::tests
