/* SPDX-License-Identifier: BSD-3-Clause */

/* Any bytes are a valid program: parameters, then calls. Crashes, undefined
 * behaviour and broken bounds stop it. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "zcp/grouping.h"

namespace {

class input {
  public:
    input(const uint8_t *data, size_t size) : data_(data), left_(size) {}

    bool empty() const { return left_ == 0; }

    template <typename T>
    T take()
    {
        T value{};
        const size_t nr = left_ < sizeof(T) ? left_ : sizeof(T);
        std::memcpy(&value, data_, nr);
        data_ += nr;
        left_ -= nr;
        return value;
    }

  private:
    const uint8_t *data_;
    size_t left_;
};

void require(bool holds)
{
    if (!holds)
        std::abort();
}

void fuzz_engine(input &in)
{
    zcp_groups_params_t p{};
    p.size = sizeof(p);
    p.ranks = in.take<uint8_t>();
    p.kind = static_cast<zcp_groups_kind_t>(in.take<uint8_t>() % (ZCP_GROUPS_KIND_COUNT + 1));
    p.period_events = in.take<uint8_t>();
    p.period_ns = in.take<uint8_t>() % 2 ? in.take<uint64_t>() : 0;
    p.max_bytes = in.take<uint32_t>() % (8u << 20);
    p.kmp = in.take<uint8_t>() % (ZCP_GROUPS_KMP_COUNT + 1);
    p.adaptive = in.take<uint8_t>() % 2;
    p.match = in.take<uint8_t>() % (ZCP_GROUPS_MATCH_COUNT + 1);
    p.recent = in.take<uint8_t>() % (ZCP_GROUPS_RECENT_COUNT + 1);
    p.window = in.take<uint8_t>() % 12;
    p.literals = in.take<uint8_t>() % 12;
    zcp_groups_t *g = nullptr;
    if (zcp_groups_create(&p, &g) != 0)
        return;
    std::vector<uint32_t> out(p.ranks);
    while (!in.empty()) {
        const uint8_t what = in.take<uint8_t>();
        if (what < 250) {
            zcp_event_t e{};
            e.src = what % (p.ranks + 1);
            e.dst = in.take<uint8_t>() % (p.ranks + 1);
            e.bytes = what & 1 ? in.take<uint64_t>() : what;
            e.time_ns = what & 2 ? in.take<uint64_t>() : 0;
            zcp_groups_event(g, &e);
        } else if (what < 252) {
            require(zcp_groups_cut(g, 1 + in.take<uint8_t>(), out.data()) > 0);
        } else if (what < 254) {
            require(zcp_groups_around(g, in.take<uint8_t>() % p.ranks, p.ranks, out.data()) > 0);
        } else {
            require(zcp_groups_forecast(g, nullptr, 0) >= 0 &&
                    zcp_groups_expect(g, nullptr, 0) >= 0);
        }
    }
    zcp_groups_stats_t stats{};
    stats.size = sizeof(stats);
    require(zcp_groups_stats(g, &stats) == 0 && stats.peak_bytes <= stats.max_bytes);
    zcp_groups_destroy(g);
}

void fuzz_patterns(input &in)
{
    zcp_patterns_params_t p{};
    p.size = sizeof(p);
    p.literals = in.take<uint8_t>() % 8;
    p.window = in.take<uint8_t>() % 40;
    p.support = in.take<uint8_t>();
    p.max_length = in.take<uint8_t>() * 4;
    p.max_steps = 100000;
    p.max_bytes = 1 + in.take<uint32_t>() % (4u << 20);
    std::vector<uint32_t> text;
    const uint8_t width = in.take<uint8_t>() % 3;
    while (!in.empty())
        text.push_back(width == 0   ? in.take<uint8_t>() % 4u
                       : width == 1 ? in.take<uint8_t>()
                                    : in.take<uint32_t>());
    zcp_patterns_t *found = nullptr;
    if (zcp_patterns_find(text.data(), text.size(), &p, &found) != 0)
        return;
    for (size_t i = 0; i < zcp_patterns_count(found); i++) {
        zcp_pattern_t one;
        require(zcp_patterns_get(found, i, &one) == 0 && one.occurrences >= 2);
        for (uint32_t o = 0; o < one.occurrences; o++) {
            for (uint32_t place = 0; place < one.length; place++)
                require(one.symbols[place] == ZCP_DONT_CARE ||
                        one.symbols[place] == text[one.offsets[o] + place]);
        }
    }
    size_t peak = 0;
    zcp_patterns_cost(found, &peak, nullptr);
    require(peak <= p.max_bytes || p.max_bytes == 0);
    zcp_patterns_destroy(found);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in(data, size);
    if (in.take<uint8_t>() % 2)
        fuzz_engine(in);
    else
        fuzz_patterns(in);
    return 0;
}

#ifdef ZC_FUZZ_STANDALONE
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
    uint64_t state = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::vector<uint8_t> data;
    for (int round = 0; round < rounds; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        data.resize(state >> 52);
        /* Few distinct bytes in some rounds, or nothing would ever repeat. */
        const uint8_t mask = round % 3 ? 0xff : 0x83;
        uint64_t byte_state = state;
        for (uint8_t &byte : data) {
            byte_state = byte_state * 6364136223846793005u + 1442695040888963407u;
            byte = static_cast<uint8_t>(byte_state >> 56) & mask;
        }
        LLVMFuzzerTestOneInput(data.data(), data.size());
    }
    std::printf("%d inputs\n", rounds);
    return 0;
}
#endif
