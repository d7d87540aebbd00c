/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "memory.h"
#include "teiresias.h"
#include "zcp/grouping.h"

using namespace zc::groups;

struct zcp_patterns {
    explicit zcp_patterns(size_t max_bytes) : memory(max_bytes), found(&memory) {}

    bounded_memory memory;
    std::pmr::vector<teiresias::pattern> found;
    zcp_patterns_end_t end = ZCP_PATTERNS_COMPLETE;
    uint64_t steps = 0;
};

static bool complete(const zcp_patterns_params_t *given, zcp_patterns_params_t &p)
{
    p = {};
    if (given) {
        if (given->size < sizeof(size_t) || given->size > sizeof(p))
            return false;
        std::memcpy(&p, given, given->size);
    }
    p.literals = p.literals ? p.literals : 3;
    p.window = p.window ? p.window : std::max(5u, p.literals);
    p.support = p.support ? p.support : 2;
    p.max_length = p.max_length ? p.max_length : 4096;
    p.max_bytes = p.max_bytes ? p.max_bytes : size_t{256} << 20;
    return p.literals >= 2 && p.literals <= p.window && p.window <= 32 && p.support >= 2 &&
           p.max_length >= p.window;
}

int zcp_patterns_find(const uint32_t *text, size_t length, const zcp_patterns_params_t *params,
                      zcp_patterns_t **out) noexcept
{
    constexpr uint32_t kLargest = (1u << 31) - 1;
    zcp_patterns_params_t p;
    if (!complete(params, p) || !out || (!text && length > 0) || length > kLargest ||
        std::any_of(text, text + length, [](uint32_t symbol) { return symbol > kLargest; }))
        return -EINVAL;
    try {
        auto patterns = std::make_unique<zcp_patterns>(p.max_bytes);
        teiresias search({text, length}, p, &patterns->memory);
        patterns->end = search.find(patterns->found);
        patterns->steps = search.steps();
        *out = patterns.release();
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

zcp_patterns_end_t zcp_patterns_end(const zcp_patterns_t *p) noexcept
{
    return p->end;
}

size_t zcp_patterns_count(const zcp_patterns_t *p) noexcept
{
    return p->found.size();
}

int zcp_patterns_get(const zcp_patterns_t *p, size_t index, zcp_pattern_t *out) noexcept
{
    if (!p || !out || index >= p->found.size())
        return -EINVAL;
    const teiresias::pattern &found = p->found[index];
    *out = {found.symbols.data(), static_cast<uint32_t>(found.symbols.size()), found.literals,
            found.offsets.data(), static_cast<uint32_t>(found.offsets.size()), found.cut};
    return 0;
}

void zcp_patterns_cost(const zcp_patterns_t *p, size_t *peak_bytes, uint64_t *steps) noexcept
{
    if (peak_bytes)
        *peak_bytes = p->memory.peak();
    if (steps)
        *steps = p->steps;
}

void zcp_patterns_destroy(zcp_patterns_t *p) noexcept
{
    delete p;
}
