// SPDX-License-Identifier: Apache-2.0
//
// What the pictures share: axes with round numbers, and the elements of an SVG. A picture is
// self-contained: no script, no font, no link. The same numbers give the same bytes.
#ifndef STOWAGE_PLANNER_REPORT_CHART_H_
#define STOWAGE_PLANNER_REPORT_CHART_H_

#include <llvm/Support/raw_ostream.h>

#include <string>
#include <vector>

namespace stowage::planner {

struct ChartUnit {
  const char* name;  // "MiB", "ms"
  double size;       // in bytes, in nanoseconds
};
/// The largest unit of which `most` is at least one.
ChartUnit unitOfBytes(double most);
ChartUnit unitOfTime(double most);

/// From numbers to places along one side of the picture.
class Axis {
 public:
  /// Covers the numbers from `least` to `most` and begins at a tick. `from`, `to`: pixels.
  Axis(double least, double most, double from, double to);
  double at(double number) const {
    return from_ + (number - first_) / (last_ - first_) * (to_ - from_);
  }
  std::vector<double> ticks() const;

 private:
  double distance_, first_, last_, from_, to_;
};

struct Place {
  double x, y;  // pixels
};

class Svg {
 public:
  /// Writes the head of a picture, with a white background.
  Svg(double width, double height, llvm::raw_ostream& os);
  void end() { os_ << "</svg>\n"; }
  /// `words` are written as they are; foreign text goes through escape(). `more`: attributes.
  void text(Place at, const char* anchor, const std::string& words, const std::string& more = "");
  void line(Place from, Place to, const char* colour, const char* more = "");
  llvm::raw_ostream& stream() { return os_; }
  /// Any bytes as text of XML: what may not be printed is escaped too.
  static std::string escape(const std::string& text);

 private:
  llvm::raw_ostream& os_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_CHART_H_
