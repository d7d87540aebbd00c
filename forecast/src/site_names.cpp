/* SPDX-License-Identifier: BSD-3-Clause */
#include "site_names.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

namespace fs = std::filesystem;

namespace zc::forecast {

namespace {

/* Addresses for one addr2line: a command line has an end. */
constexpr std::size_t kAtOnce = 500;

/** A program that is not position-independent names its code by absolute addresses. */
bool fixed_address(const std::string &module)
{
    constexpr std::size_t type_at = 16; /* e_type of the ELF header: 2 is ET_EXEC */
    std::array<char, type_at + 2> header{};
    std::ifstream in(module, std::ios::binary);
    in.read(header.data(), header.size());
    return in && header[type_at] == 2 && header[type_at + 1] == 0;
}

/** For a shell. */
std::string quoted(const std::string &text)
{
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string plain_name(const zct::site &s)
{
    if (!s.symbol.empty())
        return fmt::format("{} ({}+{:#x})", s.symbol, fs::path(s.module).filename().string(),
                           s.offset);
    return s.module.empty()
               ? fmt::format("{:#x}", s.address)
               : fmt::format("{}+{:#x}", fs::path(s.module).filename().string(), s.offset);
}

std::string line_of(FILE *from)
{
    std::string line;
    for (int c = 0; (c = std::fgetc(from)) != EOF && c != '\n';)
        line += static_cast<char>(c);
    return line;
}

/** "function (file:line)"; empty if the debugging information has no line. */
std::string name_of(const std::string &function, std::string place)
{
    if (const auto more = place.find(" (discriminator"); more != std::string::npos)
        place.resize(more);
    if (place.empty() || place.starts_with("??") || place.ends_with(":?") || place.ends_with(":0"))
        return {};
    return fmt::format("{} ({})", function, fs::path(place).filename().string());
}

void look_up(const std::string &module, const std::vector<std::uint64_t> &addresses,
             std::map<std::uint64_t, std::string> &names)
{
    for (std::size_t from = 0; from < addresses.size(); from += kAtOnce) {
        std::string command = "addr2line -f -C -e " + quoted(module);
        const std::size_t to = std::min(addresses.size(), from + kAtOnce);
        for (std::size_t i = from; i < to; i++) /* the call is before its return address */
            command += fmt::format(" {:#x}", addresses[i] - 1);
        command += " 2>/dev/null";
        const std::unique_ptr<FILE, int (*)(FILE *)> out(popen(command.c_str(), "r"), pclose);
        for (std::size_t i = from; out && i < to; i++) {
            const std::string function = line_of(out.get());
            names[addresses[i]] = name_of(function, line_of(out.get()));
        }
    }
}

} // namespace

site_names::site_names(const zct::run &run)
{
    std::map<std::string, std::set<std::uint64_t>> modules;
    std::map<std::string, bool> fixed;
    const auto key = [&](const zct::site &s) { return fixed[s.module] ? s.address : s.offset; };
    for (const zct::rank_trace &rank : run.ranks) {
        for (const zct::site &s : rank.sites) {
            if (!fixed.contains(s.module))
                fixed[s.module] = fixed_address(s.module);
            if (!s.module.empty())
                modules[s.module].insert(key(s));
        }
    }
    std::map<std::string, std::map<std::uint64_t, std::string>> found;
    for (const auto &[module, addresses] : modules)
        look_up(module, {addresses.begin(), addresses.end()}, found[module]);
    for (const zct::rank_trace &rank : run.ranks) {
        std::vector<std::string> names;
        for (const zct::site &s : rank.sites) {
            const std::string &name = found[s.module][key(s)];
            names.push_back(name.empty() ? plain_name(s) : name);
        }
        names_.push_back(std::move(names));
    }
}

const std::string &site_names::operator()(std::size_t rank, std::uint32_t site) const
{
    static const std::string unknown = "?";
    return rank < names_.size() && site < names_[rank].size() ? names_[rank][site] : unknown;
}

} // namespace zc::forecast
