// Makes words that come from strangers safe to show: the names in a module, arguments, file names, guest output. A name may hold anything
// that is UTF-8: a line's end followed by what looks like our next line, or commands to a terminal.
//
// It is applied where words for people are put together: messages of errors (make_error), lines of the log, backtraces and the texts about
// profiles. Structured values keep the bytes as they are: names are looked up by them, and file formats have escapes of their own.
//
// Escapes are not escaped again: text may pass several such places. Any thread. Throws nothing but std::bad_alloc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hindsight {

// Makes visible escapes of controls of all kinds, characters that reorder or hide their neighbours, separators of lines, and bytes that are
// not UTF-8. These are \n, \r, \t, \u{1b} or \u{202e}, and \xff for a byte. Newlines and tabs stay as they are where `multi_line` says so.
std::string printable(std::string_view text, bool multi_line = false);

// The same on one line, and of text longer than that the beginning, the end and how much is missing in between. A name can have a hundred
// thousand bytes, and a backtrace a hundred names.
inline constexpr size_t kMostNameBytes = 1000;
inline constexpr size_t kMostLineBytes = 8000;
std::string printable_name(std::string_view name);
std::string printable_line(std::string_view line);

}  // namespace hindsight
