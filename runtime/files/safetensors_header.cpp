// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/safetensors_header.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ir/base/affix.h"

namespace stowage::runtime {

namespace {

constexpr std::pair<const char*, ir::DType> kTypes[] = {
    {"F64", ir::DType::kF64},   {"F32", ir::DType::kF32},        {"F16", ir::DType::kF16},
    {"BF16", ir::DType::kBF16}, {"F8_E4M3", ir::DType::kF8E4M3}, {"F8_E5M2", ir::DType::kF8E5M2},
    {"I64", ir::DType::kI64},   {"I32", ir::DType::kI32},        {"I16", ir::DType::kI16},
    {"I8", ir::DType::kI8},     {"U8", ir::DType::kU8},          {"BOOL", ir::DType::kBool},
    {"C64", ir::DType::kC64}};

std::optional<ir::DType> findType(const std::string& name) {
  for (const auto& [text, dtype] : kTypes) {
    if (name == text) return dtype;
  }
  return std::nullopt;
}

void appendUtf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

/// Walks over the text. After the first mistake everything fails, and the mistake is kept.
class HeaderReader {
 public:
  explicit HeaderReader(llvm::StringRef text) : text_(text) {}

  bool read(SafetensorsHeader& header) {
    std::set<std::string> names;
    const bool whole = readObject([&](std::string name) {
      if (!names.insert(name).second) return fail("'" + name + "' is there twice");
      if (name == "__metadata__") return readMetadata(header);
      SafetensorsEntry entry;
      entry.name = std::move(name);
      if (!readEntry(entry)) return false;
      header.entries.push_back(std::move(entry));
      return true;
    });
    skipSpace();
    return whole && (at_ == text_.size() || fail("found more after the end"));
  }

  const std::string& mistake() const { return mistake_; }
  size_t position() const { return at_; }

 private:
  bool fail(std::string what) {
    if (mistake_.empty()) mistake_ = std::move(what);
    return false;
  }

  void skipSpace() {
    while (at_ < text_.size() && llvm::StringRef(" \t\r\n").contains(text_[at_])) ++at_;
  }

  bool take(char wanted) {
    skipSpace();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool expect(char wanted) {
    return take(wanted) || fail(std::string("expected '") + wanted + "'");
  }

  // `member` reads the value of one key.
  template <typename Member>
  bool readObject(Member member) {
    if (!expect('{')) return false;
    if (take('}')) return true;
    do {
      std::string key;
      if (!readString(key) || !expect(':') || !member(std::move(key))) return false;
    } while (take(','));
    return expect('}');
  }

  bool readMetadata(SafetensorsHeader& header) {
    return readObject([&](std::string key) { return readString(header.metadata[key]); });
  }

  bool readEntry(SafetensorsEntry& entry) {
    bool hasType = false;
    bool hasShape = false;
    std::vector<int64_t> offsets;
    const bool whole = readObject([&](const std::string& key) {
      if (key == "dtype") {
        hasType = true;
        return readString(entry.dtypeText);
      }
      if (key == "shape") {
        hasShape = true;
        return readNumbers(entry.sizes);
      }
      if (key == "data_offsets") return readNumbers(offsets);
      return fail("found unknown key '" + key + "'");
    });
    if (!whole) return false;
    if (!hasType || !hasShape || offsets.size() != 2) {
      return fail("'" + entry.name + "' needs dtype, shape and two data_offsets");
    }
    entry.dtype = findType(entry.dtypeText);
    entry.bytes = {offsets[0], offsets[1]};
    return true;
  }

  bool readNumbers(std::vector<int64_t>& numbers) {
    numbers.clear();
    if (!expect('[')) return false;
    if (take(']')) return true;
    do {
      int64_t number = 0;
      if (!readNumber(number)) return false;
      numbers.push_back(number);
    } while (take(','));
    return expect(']');
  }

  bool readNumber(int64_t& number) {
    skipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == begin) return fail("expected a number that is not negative");
    if (text_.slice(begin, at_).getAsInteger(10, number)) return fail("the number is too large");
    return true;
  }

  bool readString(std::string& out) {
    out.clear();
    if (!expect('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) return fail("found a control character");
      if (c != '\\') {
        out += c;
      } else if (!readEscape(out)) {
        return false;
      }
    }
    return expect('"');
  }

  bool readEscape(std::string& out) {
    static constexpr llvm::StringRef kNames = "\"\\/bfnrt";
    static constexpr llvm::StringRef kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) return fail("the text ends in an escape");
    const char c = text_[at_++];
    if (const size_t found = kNames.find(c); found != llvm::StringRef::npos) {
      out += kMeanings[found];
      return true;
    }
    uint32_t code = 0;
    if (c != 'u' || !readHex(code)) return fail("found an unknown escape");
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (!ir::startsWith(text_.substr(at_), "\\u")) return fail("found half of a pair");
      at_ += 2;
      if (!readHex(low) || low < 0xdc00 || low > 0xdfff) return fail("found half of a pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return fail("found half of a pair");
    }
    appendUtf8(code, out);
    return true;
  }

  bool readHex(uint32_t& code) {
    const llvm::StringRef digits = text_.substr(at_, 4);
    at_ += digits.size();
    return digits.size() == 4 && llvm::all_of(digits, llvm::isHexDigit) &&
           !digits.getAsInteger(16, code);
  }

  llvm::StringRef text_;
  size_t at_ = 0;
  std::string mistake_;
};

ir::Error wrong(const std::string& what) {
  return ir::makeError(ir::ErrorCode::kParse, "safetensors header: " + what);
}

// Bytes of so many elements; nothing on overflow.
std::optional<int64_t> countBytes(const SafetensorsEntry& entry) {
  int64_t bytes = ir::elementBytes(*entry.dtype);
  for (const int64_t size : entry.sizes) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

ir::Error checkEntries(SafetensorsHeader& header, int64_t dataBytes) {
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.bytes, a.name) < std::tie(b.bytes, b.name);
            });
  int64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.bytes.begin != end || entry.bytes.end < entry.bytes.begin) {
      return wrong("'" + entry.name + "' begins at byte " + std::to_string(entry.bytes.begin) +
                   ", expected " + std::to_string(end));
    }
    end = entry.bytes.end;
    if (!entry.dtype) continue;
    const std::optional<int64_t> bytes = countBytes(entry);
    if (bytes != entry.bytes.end - entry.bytes.begin) {
      return wrong("'" + entry.name + "' has " +
                   std::to_string(entry.bytes.end - entry.bytes.begin) +
                   " bytes, which its shape does not need");
    }
  }
  if (end == dataBytes) return ir::success();
  return wrong("the tensors end at byte " + std::to_string(end) + ", the file holds " +
               std::to_string(dataBytes));
}

std::string quote(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += {kHex[c >> 4], kHex[c & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string entryText(const SafetensorsEntry& entry) {
  std::string shape;
  for (const int64_t size : entry.sizes) shape += (shape.empty() ? "" : ",") + std::to_string(size);
  return quote(entry.name) + ":{\"dtype\":" + quote(entry.dtypeText) + ",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(entry.bytes.begin) + "," +
         std::to_string(entry.bytes.end) + "]}";
}

}  // namespace

ir::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef text, int64_t dataBytes) {
  SafetensorsHeader header;
  HeaderReader reader(text);
  if (!reader.read(header)) {
    return wrong("byte " + std::to_string(reader.position()) + ": " + reader.mistake());
  }
  if (ir::Error error = checkEntries(header, dataBytes)) return error;
  return header;
}

std::string layOutSafetensorsHeader(SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      if (text.back() != '{') text += ",";
      text += quote(key) + ":" + quote(value);
    }
    text += "}";
  }
  int64_t end = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.dtypeText = *safetensorsTypeName(*entry.dtype);
    entry.bytes = {end, end + *countBytes(entry)};
    end = entry.bytes.end;
    if (text.size() > 1) text += ",";
    text += entryText(entry);
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

std::optional<std::string> safetensorsTypeName(ir::DType dtype) {
  for (const auto& [text, own] : kTypes) {
    if (own == dtype) return text;
  }
  return std::nullopt;
}

}  // namespace stowage::runtime
