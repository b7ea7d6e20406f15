// Converts a test script into the JSON form and the modules that wast2json makes, for the files that it
// cannot read: those of the language's third version, with typed function references and the final form of
// exception handling. It knows what these files use of the text format and refuses everything else, by name
// and line.
#pragma once

#include <filesystem>
#include <string>

namespace hindsight::spec {

// Writes `json` and, beside it, the modules. Empty on success, otherwise what is wrong.
std::string assemble_script(const std::filesystem::path& wast, const std::filesystem::path& json);

}  // namespace hindsight::spec
