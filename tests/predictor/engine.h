/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TEST_ENGINE_H_INCLUDED
#define ZCP_TEST_ENGINE_H_INCLUDED

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "zcp/predictor.h"

namespace zcp_test {

constexpr zcp_params_t params_of(zcp_kind_t kind)
{
    zcp_params_t params{};
    params.size = sizeof(params);
    params.kind = kind;
    return params;
}

constexpr zcp_envelope_t envelope(int32_t source, int32_t tag = 1, uint64_t bytes = 65536)
{
    return {7, source, tag, bytes};
}

constexpr zcp_receive_t to(const zcp_envelope_t &envelope, uint64_t addr)
{
    return {envelope, addr};
}

inline bool same(const zcp_receive_t &a, const zcp_receive_t &b)
{
    return a.envelope.comm == b.envelope.comm && a.envelope.source == b.envelope.source &&
           a.envelope.tag == b.envelope.tag && a.envelope.bytes == b.envelope.bytes &&
           a.addr == b.addr;
}

/** For names of parametrised tests: letters only. */
inline std::string kind_label(const testing::TestParamInfo<zcp_kind_t> &info)
{
    std::string name = zcp_kind_name(info.param);
    std::erase(name, '-');
    return name;
}

/** An engine that destroys itself, with arguments by value. */
class engine {
  public:
    explicit engine(zcp_kind_t kind = ZCP_DEFAULT) : engine(params_of(kind)) {}
    explicit engine(const zcp_params_t &params)
    {
        zcp_t *made = nullptr;
        EXPECT_EQ(0, zcp_create(&params, &made));
        handle_.reset(made);
    }

    void receive(const zcp_envelope_t &envelope, uint64_t addr) { receive({envelope, addr}); }
    void receive(const zcp_receive_t &receive) { zcp_receive(handle_.get(), &receive); }
    void receive(const std::vector<zcp_receive_t> &stream, int times = 1)
    {
        while (times-- > 0) {
            for (const zcp_receive_t &r : stream)
                receive(r);
        }
    }

    /** Every answer, whatever it says, keeps the promises of the header. */
    zcp_landing_t arrive(const zcp_envelope_t &envelope)
    {
        zcp_landing_t out{1, 2, 3, 0, 4};
        const int known = zcp_arrival(handle_.get(), &envelope, &out);
        EXPECT_TRUE(known == 0 || known == 1);
        EXPECT_NE(0u, out.claim);
        EXPECT_GE(out.confidence, 0.0f);
        EXPECT_LE(out.confidence, 1.0f);
        EXPECT_EQ(known == 1, out.ahead != 0);
        EXPECT_TRUE(known == 1 || (out.addr == 0 && out.modulus == 0));
        EXPECT_TRUE(out.modulus == 0 || out.addr < out.modulus);
        return out;
    }

    void settle(const zcp_landing_t &landing, uint64_t addr)
    {
        zcp_settle(handle_.get(), landing.claim, addr);
    }
    void cancel(const zcp_landing_t &landing) { zcp_cancel(handle_.get(), landing.claim); }

    std::vector<zcp_receive_t> next(uint32_t k) const
    {
        std::vector<zcp_receive_t> out(k);
        out.resize(zcp_next(handle_.get(), out.data(), k));
        return out;
    }

    zcp_stats_t stats() const
    {
        zcp_stats_t stats{};
        stats.size = sizeof(stats);
        EXPECT_EQ(0, zcp_stats(handle_.get(), &stats));
        return stats;
    }

    zcp_t *get() const { return handle_.get(); }

  private:
    struct destroy {
        void operator()(zcp_t *p) const { zcp_destroy(p); }
    };
    std::unique_ptr<zcp_t, destroy> handle_;
};

/** Share of @stream that next(h)[h-1] foretold, learning as it goes. */
inline double accuracy(engine &engine, const std::vector<zcp_receive_t> &stream, uint32_t h)
{
    std::vector<std::optional<zcp_receive_t>> expected(stream.size() + h);
    size_t right = 0;
    for (size_t i = 0; i < stream.size(); i++) {
        const auto coming = engine.next(h);
        if (coming.size() == h)
            expected[i + h - 1] = coming.back();
        right += expected[i] && same(*expected[i], stream[i]);
        engine.receive(stream[i]);
    }
    return static_cast<double>(right) / static_cast<double>(stream.size());
}

inline std::vector<zcp_receive_t> repeated(const std::vector<zcp_receive_t> &period, size_t total)
{
    std::vector<zcp_receive_t> stream;
    for (size_t i = 0; i < total; i++)
        stream.push_back(period[i % period.size()]);
    return stream;
}

/** 126 receives as NAS LU makes them: two sweeps of 31 planes, two senders, one odd exchange. */
inline std::vector<zcp_receive_t> nested_period()
{
    std::vector<zcp_receive_t> period;
    for (int32_t sweep = 0; sweep < 2; sweep++) {
        for (int plane = 0; plane < 31; plane++) {
            period.push_back(to(envelope(1, sweep, 1280), 0x10000));
            period.push_back(to(envelope(2, sweep, 1280), 0x20000));
        }
        period.push_back(to(envelope(3 + sweep, 9, 81920), 0x30000));
    }
    return period;
}

/** Receives without any pattern: 40 senders, 1000 buffers. */
inline std::vector<zcp_receive_t> noise(size_t total, uint32_t seed = 1)
{
    std::mt19937 random(seed); /* its sequence is fixed by the standard, distributions' is not */
    std::vector<zcp_receive_t> stream;
    for (size_t i = 0; i < total; i++) {
        const auto source = static_cast<int32_t>(random() % 40);
        stream.push_back(to(envelope(source), 0x100000 + (random() % 1000) * 0x1230));
    }
    return stream;
}

} // namespace zcp_test

#endif
