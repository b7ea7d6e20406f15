// The documents of the tree are true where a program can tell: what they link to and what files they name is there.
#include <gtest/gtest.h>

#include <cctype>
#include <regex>
#include <set>

#include "tests/architecture/source_tree.h"

namespace hindsight {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> documents() {
  std::vector<std::string> out = source_tree::files();
  std::erase_if(out, [](const std::string& file) { return !file.ends_with(".md"); });
  return out;
}

std::vector<std::string> matches(const std::string& text, const std::regex& what) {
  std::vector<std::string> out;
  for (std::sregex_iterator i(text.begin(), text.end(), what), end; i != end; ++i)
    out.push_back((*i)[1].str());
  return out;
}

// As a page of the document on the web names its headings.
std::set<std::string> headings(const std::string& text) {
  std::set<std::string> out;
  for (const std::string& heading : matches(text, std::regex(R"((?:^|\n)#+ ([^\n]*))"))) {
    std::string name;
    for (const char c : std::regex_replace(heading, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1")) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) || c == '_' || c == '-' || byte >= 0x80)
        name += static_cast<char>(std::tolower(byte));
      if (c == ' ') name += '-';
    }
    out.insert(name);
  }
  return out;
}

TEST(Documents, LeadToFilesAndHeadingsThatAreThere) {
  static const std::regex links(R"(\]\(([^)\s]+)\))");
  std::string complaints;
  size_t links_seen = 0;
  for (const std::string& document : documents()) {
    const std::string text = source_tree::text_of(source_tree::root() / document);
    for (const std::string& link : matches(text, links)) {
      if (link.find(':') != std::string::npos) continue;  // elsewhere
      ++links_seen;
      const size_t hash = link.find('#');
      const std::string path = link.substr(0, hash);
      const fs::path from = source_tree::root() / document;
      const fs::path target = path.empty() ? from : from.parent_path() / path;
      if (!fs::exists(target)) {
        complaints += document + ": " + link + " leads nowhere\n";
      } else if (hash != std::string::npos && target.extension() == ".md" &&
                 !headings(source_tree::text_of(target)).contains(link.substr(hash + 1))) {
        complaints += document + ": " + link + " leads to no heading\n";
      }
    }
  }
  EXPECT_GT(links_seen, 100u);
  EXPECT_EQ(complaints, "");
}

TEST(Documents, NameFilesThatAreThere) {
  // Headers of others.
  const std::set<std::string> foreign = {"wasm.h", "linux/perf_event.h"};
  static const std::regex names(R"(`([\w./-]+\.(?:h|cc|c|mjs|cjs|sh|md|json|map|cmake|S))`)");
  const std::vector<std::string> files = source_tree::files();
  std::string complaints;
  for (const std::string& document : documents()) {
    const fs::path folder = (source_tree::root() / document).parent_path();
    for (const std::string& name : matches(source_tree::text_of(source_tree::root() / document), names)) {
      // From the root, from the document's folder, or the end of a path that readers will find.
      const bool known =
          foreign.contains(name) || fs::exists(source_tree::root() / name) || fs::exists(folder / name) ||
          std::ranges::any_of(files, [&](const std::string& file) { return file.ends_with("/" + name); });
      if (!known) complaints += document + ": there is no " + name + "\n";
    }
  }
  EXPECT_EQ(complaints, "");
}

}  // namespace
}  // namespace hindsight
