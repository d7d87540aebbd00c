/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"
#include "zcl/lane.h"

#include <random>

namespace {

void check(int status, const char *what)
{
    if (status < 0)
        die("%s: %s", what, std::strerror(-status));
}

class lane_engine final : public engine {
  public:
    lane_engine(zcl_way_t way, const std::string &address) : way_(way)
    {
        local_.sin_family = AF_INET;
        if (inet_pton(AF_INET, address.c_str(), &local_.sin_addr) != 1)
            die("not an address: %s", address.c_str());
    }
    ~lane_engine() override { zcl_destroy(context_); }

    int create(const unsigned char *secret)
    {
        zcl_params_t p{};
        p.size = sizeof p;
        p.way = way_;
        p.local = reinterpret_cast<const sockaddr *>(&local_);
        p.local_len = sizeof local_;
        p.secret = secret;
        p.landing_bytes = std::size_t{160} << 20;
        p.budget_bytes = std::size_t{1} << 30;
        return zcl_create(&p, &context_);
    }

    void connect(control &peer, bool first) override
    {
        unsigned char secret[ZCL_SECRET_BYTES];
        if (first) {
            std::random_device random;
            for (unsigned char &c : secret)
                c = static_cast<unsigned char>(random());
            peer.put(secret);
        } else {
            peer.get(secret, sizeof secret);
        }
        check(create(secret), "zcl_create");
        if (first) {
            const auto there = peer.get<sockaddr_in>();
            check(zcl_connect(context_, reinterpret_cast<const sockaddr *>(&there), sizeof there,
                              nullptr, &lane_),
                  "zcl_connect");
        } else {
            sockaddr_in here{};
            socklen_t len = sizeof here;
            check(zcl_address(context_, reinterpret_cast<sockaddr *>(&here), &len), "zcl_address");
            peer.put(here);
        }
        while (!open_)
            wait();
        peer.meet();
    }

    void post(void *buf, std::size_t len) override
    {
        const zcl_frame_t frame{next_in_++, len, ZCL_CLASS_NONE, 0};
        check(zcl_expect(lane_, &frame, buf), "zcl_expect");
    }

    const void *receive(std::size_t len) override
    {
        while (arrived_.empty())
            wait();
        last_ = arrived_.front();
        arrived_.erase(arrived_.begin());
        if (last_.frame.len != len)
            die("lane: %zu bytes instead of %zu", static_cast<std::size_t>(last_.frame.len), len);
        if (last_.landed)
            next_in_++;
        return last_.data;
    }

    void send(const void *buf, std::size_t len) override
    {
        const zcl_frame_t frame{next_out_++, len, ZCL_CLASS_NONE, 0};
        check(zcl_send(lane_, &frame, buf, nullptr), "zcl_send");
        nr_unsent_++;
    }

    void wait_sent() override
    {
        while (nr_unsent_ > 0)
            wait();
    }

    void release() override
    {
        if (last_.landed)
            check(zcl_release(lane_, last_.data), "zcl_release");
        last_ = {};
    }

  private:
    void wait()
    {
        zcl_event_t events[16];
        const int nr = zcl_poll(context_, events, 16, -1);
        if (nr != -EINTR)
            check(nr, "zcl_poll");
        for (int i = 0; i < nr; i++) {
            const zcl_event_t &e = events[i];
            if (e.status < 0 || e.type == ZCL_EVENT_BROKEN)
                die("the lane broke: %s", std::strerror(-e.status));
            if (e.type == ZCL_EVENT_ARRIVED)
                arrived_.push_back(e);
            else if (e.type == ZCL_EVENT_SENT)
                nr_unsent_--;
            else
                open_ = true, lane_ = e.lane;
        }
    }

    zcl_way_t way_;
    sockaddr_in local_{};
    zcl_t *context_ = nullptr;
    zcl_lane_t *lane_ = nullptr;
    bool open_ = false;
    std::uint64_t next_in_ = 0, next_out_ = 0;
    int nr_unsent_ = 0;
    std::vector<zcl_event_t> arrived_;
    zcl_event_t last_{};
};

} // namespace

std::unique_ptr<engine> make_lane_engine(const std::string &way, const std::string &address,
                                         std::string *why)
{
    const zcl_way_t which = way == "uring" ? ZCL_WAY_URING : ZCL_WAY_THREAD;
    const unsigned char any[ZCL_SECRET_BYTES] = {};
    const int error = lane_engine(which, address).create(any);
    if (error < 0) {
        *why = std::strerror(-error);
        return nullptr;
    }
    return std::make_unique<lane_engine>(which, address);
}
