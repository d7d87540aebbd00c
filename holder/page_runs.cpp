/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_runs.h"

#include <nlohmann/json.hpp>

namespace zc::holder {
namespace {

constexpr unsigned kByteBits = 8;

void put(std::string &bytes, std::uint64_t number)
{
    for (unsigned shift = 0; shift < 64; shift += kByteBits)
        bytes += static_cast<char>(number >> shift);
}

std::uint64_t take(std::string_view &bytes)
{
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += kByteBits) {
        number |= std::uint64_t{static_cast<unsigned char>(bytes.front())} << shift;
        bytes.remove_prefix(1);
    }
    return number;
}

} // namespace

void page_runs::add(std::uint64_t address, std::uint64_t bytes, std::uint64_t from)
{
    if (!runs_.empty()) {
        stored_pages &last = runs_.back();
        const bool continues = from == kFollows
                                   ? last.from == kFollows
                                   : last.from != kFollows && from == last.from + last.bytes;
        if (continues && address == last.address + last.bytes) {
            last.bytes += bytes;
            return;
        }
    }
    runs_.push_back({address, bytes, from});
}

std::string page_runs::line(const char *kind) const
{
    std::string all = nlohmann::json{{kind, runs_.size()}}.dump() + "\n";
    all.reserve(all.size() + runs_.size() * kBytes);
    for (const stored_pages &each : runs_) {
        put(all, each.address);
        put(all, each.bytes);
        put(all, each.from);
    }
    return all;
}

std::vector<stored_pages> page_runs::of(std::string_view bytes)
{
    std::vector<stored_pages> runs;
    runs.reserve(bytes.size() / kBytes);
    while (bytes.size() >= kBytes) {
        stored_pages run{};
        run.address = take(bytes);
        run.bytes = take(bytes);
        run.from = take(bytes);
        runs.push_back(run);
    }
    return runs;
}

} // namespace zc::holder
