/* SPDX-License-Identifier: BSD-3-Clause */
#include "contender.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace zc::report {

namespace {

constexpr const char *kLongestMatch = "longest-match";
constexpr const char *kFitted = "dpd-fitted";

class library_engine final : public contender {
  public:
    explicit library_engine(zcp_kind_t kind, uint32_t dpd_least = 0)
    {
        zcp_params_t params{};
        params.size = sizeof(params);
        params.kind = kind;
        params.dpd_least = dpd_least;
        zcp_t *made = nullptr;
        if (zcp_create(&params, &made) != 0)
            throw std::bad_alloc();
        engine_.reset(made);
    }

    void receive(const zcp_receive_t &receive) override { zcp_receive(engine_.get(), &receive); }
    size_t next(std::span<zcp_receive_t> out) const override
    {
        return zcp_next(engine_.get(), out.data(), static_cast<uint32_t>(out.size()));
    }
    zcp_t *engine() override { return engine_.get(); }

  private:
    struct destroy {
        void operator()(zcp_t *engine) const { zcp_destroy(engine); }
    };
    std::unique_ptr<zcp_t, destroy> engine_;
};

/** A run length of matches per lag; the longest run wins, then the shortest lag. */
class longest_match final : public contender {
  public:
    void receive(const zcp_receive_t &receive) override
    {
        const uint64_t print = print_of(receive);
        for (uint32_t i = 0; i < kReach; i++) {
            /* lag i + 1 is at head_ + i, and again kReach further */
            runs_[i] = prints_[head_ + i] == print ? runs_[i] + 1 : 0;
        }
        head_ = (head_ + kReach - 1) % kReach;
        prints_[head_] = prints_[head_ + kReach] = print;
        samples_[head_] = receive;
        const auto longest = std::max_element(runs_.begin(), runs_.end());
        lag_ = *longest == 0 ? 0 : static_cast<uint32_t>(longest - runs_.begin()) + 1;
    }

    size_t next(std::span<zcp_receive_t> out) const override
    {
        if (lag_ == 0)
            return 0;
        for (uint32_t k = 0; k < out.size(); k++)
            out[k] = samples_[(head_ + lag_ - 1 - k % lag_) % kReach];
        return out.size();
    }

  private:
    static constexpr uint32_t kReach = 4096;

    static uint64_t print_of(const zcp_receive_t &r)
    {
        uint64_t print = 1;
        for (const uint64_t part :
             {uint64_t{static_cast<uint32_t>(r.envelope.source)}, r.envelope.bytes, r.addr})
            print = (print ^ part) * 0x9e3779b97f4a7c15u, print ^= print >> 31;
        return print;
    }

    uint32_t head_ = 0;
    uint32_t lag_ = 0;
    std::array<uint32_t, kReach> runs_{};
    std::array<uint64_t, std::size_t{2} * kReach> prints_{};
    std::array<zcp_receive_t, kReach> samples_{};
};

} // namespace

std::vector<std::string> contender_names()
{
    std::vector<std::string> names;
    names.reserve(ZCP_KIND_COUNT + 2);
    for (int kind = 0; kind < ZCP_KIND_COUNT; kind++)
        names.push_back(zcp_kind_name(static_cast<zcp_kind_t>(kind)));
    names.push_back(kFitted);
    names.push_back(kLongestMatch);
    return names;
}

std::unique_ptr<contender> make_contender(const std::string &name)
{
    if (name == kLongestMatch)
        return std::make_unique<longest_match>();
    if (name == kFitted)
        return std::make_unique<library_engine>(ZCP_DPD, 1);
    const int kind = zcp_kind_parse(name.c_str());
    if (kind < 0)
        throw std::invalid_argument("unknown predictor \"" + name + "\"");
    return std::make_unique<library_engine>(static_cast<zcp_kind_t>(kind));
}

} // namespace zc::report
