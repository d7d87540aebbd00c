/* SPDX-License-Identifier: BSD-3-Clause */
#include "programs.h"

#include <algorithm>
#include <random>

using zc::report::trace;
using zc::report::traced_receive;

namespace zcp_test {

namespace {

/** Writes down receives as they are posted. */
class recorder {
  public:
    explicit recorder(const char *name) : trace_{name, 0, {}, ""} {}

    /** The message was sent @lead receives before its receive was posted; 0: afterwards. */
    void receive(const zcp_envelope_t &envelope, uint64_t addr, uint32_t lead)
    {
        now_ += kTick;
        const int64_t sent = lead ? now_ - kTick * lead + kTick / 2 : now_ + 1;
        trace_.receives.push_back({{envelope, addr}, now_, sent, 0});
    }

    trace done()
    {
        zc::report::number_arrivals(trace_.receives);
        return std::move(trace_);
    }

    uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
    bool chance(uint32_t percent) { return below(100) < percent; }

  private:
    static constexpr int64_t kTick = 10;
    trace trace_;
    int64_t now_ = 0;
    std::mt19937 random_{7}; /* its sequence is fixed by the standard */
};

/** Where malloc() puts something large: its own pages, behind a header of 16 bytes. */
uint64_t large_malloc(recorder &out)
{
    return 0x7f0000000010 + uint64_t{out.below(1u << 20)} * 0x1000;
}

constexpr uint64_t kBuffer = 0x10000000;
constexpr uint64_t kRoom = 0x200000;

} // namespace

trace particles()
{
    recorder out("particles");
    for (int step = 0; step < 400; step++) {
        for (int32_t from = 0; from < 6; from++)
            out.receive({1, from, 5, 100000 + 16ull * out.below(3000)}, kBuffer + kRoom * from,
                        out.chance(50) ? 3 : 0);
    }
    return out.done();
}

trace packed_particles()
{
    recorder out("packed-particles");
    for (int step = 0; step < 400; step++) {
        uint64_t addr = kBuffer;
        for (int32_t from = 0; from < 6; from++) {
            const uint64_t bytes = 100000 + 16ull * out.below(3000);
            out.receive({1, from, 5, bytes}, addr, out.chance(50) ? 3 : 0);
            addr += bytes;
        }
    }
    return out.done();
}

trace triple_buffers()
{
    recorder out("triple-buffers");
    for (uint64_t step = 0; step < 500; step++) {
        for (int32_t from = 0; from < 4; from++)
            out.receive({1, from, 1, 65536}, kBuffer + kRoom * (3 * from + step % 3), 6);
    }
    return out.done();
}

trace adaptive_mesh()
{
    recorder out("adaptive-mesh");
    for (int32_t phase = 0; phase < 20; phase++) {
        struct block {
            zcp_envelope_t envelope;
            uint64_t addr;
        };
        std::vector<block> blocks;
        for (uint32_t i = 0; i < 4 + out.below(8); i++)
            blocks.push_back({{1, static_cast<int32_t>(out.below(12)),
                               100 * phase + static_cast<int32_t>(i), 32768u << out.below(3)},
                              large_malloc(out)});
        for (int step = 0; step < 30; step++) {
            for (const block &b : blocks)
                out.receive(b.envelope, b.addr, out.chance(60) ? 4 : 0);
        }
    }
    return out.done();
}

trace any_source_ring()
{
    recorder out("any-source-ring");
    for (uint64_t i = 0; i < 3000; i++) {
        const auto worker = static_cast<int32_t>(1 + std::min(out.below(15), out.below(15)));
        out.receive({1, worker, 3, 20000 + 8ull * out.below(500)}, kBuffer + kRoom * (i % 4), 3);
    }
    return out.done();
}

trace job_queue()
{
    recorder out("job-queue");
    for (int i = 0; i < 3000; i++) {
        const auto worker = static_cast<int32_t>(i / 10 + static_cast<int>(out.below(20)));
        out.receive({1, worker, 3, 50000}, kBuffer, out.chance(50) ? 2 : 0);
    }
    return out.done();
}

trace step_tags()
{
    recorder out("step-tags");
    for (int32_t step = 0; step < 500; step++) {
        for (int32_t from = 0; from < 6; from++)
            out.receive({1, from, step, 40000 + 1000u * static_cast<uint32_t>(from)},
                        kBuffer + kRoom * (2 * from + step % 2), out.chance(50) ? 4 : 0);
    }
    return out.done();
}

trace communicator_churn()
{
    recorder out("communicator-churn");
    for (uint32_t solve = 0; solve < 1500; solve++) {
        for (int32_t from = 0; from < 3; from++)
            out.receive({100 + solve, from, 2, 65536}, kBuffer + kRoom * from,
                        out.chance(50) ? 2 : 0);
    }
    return out.done();
}

trace allocator_churn()
{
    recorder out("allocator-churn");
    for (int i = 0; i < 3000; i++)
        out.receive({1, i % 5, i % 3, 200000}, large_malloc(out), out.chance(50) ? 3 : 0);
    return out.done();
}

trace panels()
{
    recorder out("panels");
    for (uint64_t k = 0; k < 600; k++) {
        const uint64_t rows = 4000 - 6 * k;
        out.receive({1, static_cast<int32_t>(k % 4), static_cast<int32_t>(k % 50), rows * 64 * 8},
                    kBuffer + kRoom * (k % 2), out.chance(50) ? 2 : 0);
        out.receive({2, 7, 9, 64 * 8 * 100}, 4 * kBuffer + k * 64 * 8 * 100,
                    out.chance(50) ? 2 : 0);
    }
    return out.done();
}

trace alternating_phases()
{
    recorder out("alternating-phases");
    for (int phase = 0; phase < 40; phase++) {
        const int32_t shift = phase % 2 ? 10 : 0;
        const int rounds = phase % 2 ? 9 : 14;
        for (int round = 0; round < rounds; round++) {
            for (int32_t i = 0; i < (phase % 2 ? 7 : 4); i++)
                out.receive({1, shift + i, 1, 16384u << (i % 3)}, kBuffer + kRoom * (shift + i),
                            out.chance(50) ? 3 : 0);
        }
    }
    return out.done();
}

trace many_peers()
{
    recorder out("many-peers");
    for (int round = 0; round < 12; round++) {
        for (int32_t from = 0; from < 2000; from++)
            out.receive({1, from, 1, 16384}, kBuffer + kRoom * from, out.chance(50) ? 3 : 0);
    }
    return out.done();
}

trace random_addresses()
{
    recorder out("random-addresses");
    for (int i = 0; i < 3000; i++) {
        const uint64_t addr = kBuffer + out.below(1u << 30);
        out.receive({1, static_cast<int32_t>(out.below(20)), 1, 65536}, addr,
                    out.chance(50) ? 3 : 0);
    }
    return out.done();
}

trace random_sizes_and_addresses()
{
    recorder out("random-sizes-and-addresses");
    for (int i = 0; i < 6000; i++) {
        const uint64_t addr = kBuffer + out.below(1u << 30);
        out.receive({1, static_cast<int32_t>(out.below(20)), 1, 10000 + out.below(90000)}, addr,
                    out.chance(50) ? 3 : 0);
    }
    return out.done();
}

} // namespace zcp_test
