/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <vector>

#include "error.h"

namespace zc::migrate {

namespace {

struct extent {
    std::uintptr_t begin, end;
};

std::uintptr_t begin_of(const array &a)
{
    return reinterpret_cast<std::uintptr_t>(a.address);
}

/** Readable mappings, adjoining ones joined. */
std::vector<extent> readable()
{
    std::vector<extent> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        char mode = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %c", &begin, &end, &mode) != 3 ||
            mode != 'r')
            continue;
        if (!all.empty() && all.back().end == begin)
            all.back().end = end;
        else
            all.push_back({begin, end});
    }
    return all;
}

} // namespace

void registry::check(const array &wanted, bool replacing) const
{
    if (wanted.name.empty() || wanted.name.size() > 127 ||
        wanted.name.find('/') != std::string::npos || wanted.name == ".")
        throw error(EINVAL, "bad name of registered data: '" + wanted.name + "'");
    if (!wanted.address || wanted.count == 0)
        throw error(EINVAL, "no memory to register as '" + wanted.name + "'");
    if (wanted.count > (std::uint64_t{1} << 46) / size_of(wanted.type))
        throw error(EINVAL, "'" + wanted.name + "' is larger than memory can be");
    if (!replacing && arrays_.contains(wanted.name))
        throw error(EEXIST, "'" + wanted.name + "' is registered already");
    for (const auto &[name, other] : arrays_)
        if (name != wanted.name && begin_of(wanted) < begin_of(other) + other.bytes() &&
            begin_of(other) < begin_of(wanted) + wanted.bytes())
            throw error(EEXIST, "memory of '" + wanted.name + "' overlaps that of '" + name + "'");
}

const array &registry::add(const std::string &name, void *address, std::uint64_t count,
                           element type)
{
    array wanted{name, static_cast<std::byte *>(address), count, type};
    check(wanted, false);
    return arrays_.emplace(name, std::move(wanted)).first->second;
}

const array &registry::replace(const std::string &name, void *address, std::uint64_t count)
{
    auto found = arrays_.find(name);
    if (found == arrays_.end())
        throw error(ENOENT, "'" + name + "' is not registered");
    array wanted{name, static_cast<std::byte *>(address), count, found->second.type};
    check(wanted, true);
    return found->second = wanted;
}

void registry::remove(const std::string &name)
{
    if (!arrays_.erase(name))
        throw error(ENOENT, "'" + name + "' is not registered");
}

const array *registry::find(const std::string &name) const
{
    auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
}

std::uint64_t registry::bytes() const noexcept
{
    std::uint64_t sum = 0;
    for (const auto &[name, a] : arrays_)
        sum += a.bytes();
    return sum;
}

void registry::check_mapped() const
{
    const std::vector<extent> mapped = readable();
    for (const auto &[name, a] : arrays_) {
        bool whole = false;
        for (const extent &e : mapped)
            whole = whole || (e.begin <= begin_of(a) && begin_of(a) + a.bytes() <= e.end);
        if (!whole)
            throw error(EFAULT, "memory of '" + name +
                                    "' is not there any more: freed without zcm_unregister()?");
    }
}

} // namespace zc::migrate
