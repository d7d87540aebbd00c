/* SPDX-License-Identifier: BSD-3-Clause */
#include "registry.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "error.h"

namespace zc::migrate {

namespace {

struct extent {
    std::uintptr_t begin, end;
};

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

void registry::check(const array &wanted, const array *replaced) const
{
    if (wanted.name.empty() || wanted.name.size() > 127 ||
        wanted.name.find('/') != std::string::npos || wanted.name == ".")
        throw error(EINVAL, "bad name of registered data: '" + wanted.name + "'");
    if (!wanted.address && wanted.count > 0)
        throw error(EINVAL, "no memory to register as '" + wanted.name + "'");
    const std::uint64_t bytes = wanted.shape
                                    ? std::max(wanted.shape->unit_bytes() * wanted.shape->units(),
                                               static_cast<std::uint64_t>(wanted.shape->end(1)))
                                    : size_of(wanted.type);
    if (wanted.count > (std::uint64_t{1} << 46) / bytes)
        throw error(EINVAL, "'" + wanted.name + "' is larger than memory can be");
    if (!replaced && arrays_.contains(wanted.name))
        throw error(EEXIST, "'" + wanted.name + "' is registered already");
    if (wanted.count == 0)
        return;
    /* Of those that begin before its end only the last can reach into it: they do not overlap. */
    auto next = places_.lower_bound(wanted.end());
    while (next != places_.begin()) {
        const array &other = *std::prev(next)->second;
        if (&other != replaced) {
            if (other.end() > wanted.begin())
                throw error(EEXIST, "memory of '" + wanted.name + "' overlaps that of '" +
                                        other.name + "'");
            return;
        }
        --next;
    }
}

/* One without elements is nowhere: its address may be that of another one. */
void registry::place(const array &one)
{
    if (one.count > 0)
        places_.emplace(one.begin(), &one);
}

void registry::displace(const array &one)
{
    if (one.count > 0)
        places_.erase(one.begin());
}

const array &registry::add(array wanted)
{
    check(wanted, nullptr);
    const std::string name = wanted.name;
    const array &added = arrays_.emplace(name, std::move(wanted)).first->second;
    bytes_ += added.bytes();
    place(added);
    return added;
}

const array &registry::replace(const std::string &name, void *address, std::uint64_t count)
{
    auto found = arrays_.find(name);
    if (found == arrays_.end())
        throw error(ENOENT, "'" + name + "' is not registered");
    array &old = found->second;
    array wanted = old;
    wanted.address = static_cast<std::byte *>(address);
    wanted.count = count;
    check(wanted, &old);
    displace(old);
    bytes_ += wanted.bytes() - old.bytes();
    old = std::move(wanted);
    place(old);
    return old;
}

void registry::remove(const std::string &name)
{
    auto found = arrays_.find(name);
    if (found == arrays_.end())
        throw error(ENOENT, "'" + name + "' is not registered");
    displace(found->second);
    bytes_ -= found->second.bytes();
    arrays_.erase(found);
}

const array *registry::find(const std::string &name) const
{
    auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
}

void registry::check_mapped() const
{
    const std::vector<extent> mapped = readable();
    auto here = mapped.begin(); /* both are in the order of addresses */
    for (const auto &[begin, a] : places_) {
        while (here != mapped.end() && here->end <= begin)
            ++here;
        if (here == mapped.end() || begin < here->begin || a->end() > here->end)
            throw error(EFAULT, "memory of '" + a->name +
                                    "' is not there any more: freed without zcm_unregister()?");
    }
}

} // namespace zc::migrate
