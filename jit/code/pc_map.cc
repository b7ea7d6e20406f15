#include "jit/code/pc_map.h"

#include <algorithm>

namespace hindsight::jit {

void PcMap::finish() {
  merge_rows();
  rows_.shrink_to_fit();
}

void PcMap::merge_rows() {
  const auto before = [](const PcRow& a, const PcRow& b) { return a.code < b.code; };
  if (!std::is_sorted(rows_.begin(), rows_.end(), before))
    std::stable_sort(rows_.begin(), rows_.end(), before);
  size_t out = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    // Of rows at one offset the last one added counts: the earlier instructions emitted no code.
    if (i + 1 < rows_.size() && rows_[i + 1].code == rows_[i].code) continue;
    if (out > 0 && rows_[out - 1].wasm == rows_[i].wasm && rows_[out - 1].inline_site == rows_[i].inline_site)
      continue;
    rows_[out++] = rows_[i];
  }
  rows_.resize(out);
}

const PcRow* PcMap::find(CodeOffset code) const noexcept {
  const PcRow* first = rows_.data();
  size_t count = rows_.size();
  // The number of rows at or before `code`.
  while (count > 0) {
    const size_t half = count / 2;
    if (first[half].code <= code) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first == rows_.data() ? nullptr : first - 1;
}

}  // namespace hindsight::jit
