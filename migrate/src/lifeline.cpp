/* SPDX-License-Identifier: BSD-3-Clause */
#include "lifeline.h"

#include <vector>

#include "error.h"

namespace zc::migrate {

namespace {

constexpr double kPingEvery = 0.25;
constexpr double kLauncher = 5;  /* seconds for one that sees the end of its process at once */
constexpr unsigned kLooks = 256; /* without a rest, and without looking at the clock */

} // namespace

void lifeline::require_peer() const
{
    if (const std::string how = peer_->end_of_peer(); !how.empty())
        throw error(EPIPE, other() + " " + how);
}

void lifeline::require(bool succeeded, const char *what) const
{
    if (succeeded)
        return;
    const double begin = peer_->now();
    require_peer();
    for (unsigned rounds = 0; peer_->end_is_told() && peer_->now() - begin < kLauncher; rounds++) {
        peer_->rest(rounds);
        require_peer();
    }
    throw error(EPIPE, other() + " is gone: " + what + " failed");
}

void lifeline::commit()
{
    send_until_taken(word::ping); /* it may have been stopped, or cut off, since it said ready */
    if (peer_->commit())
        return;
    require_peer();
    throw error(EPIPE, other() + " is gone: its launcher does not answer");
}

lifeline::deadline::deadline(lifeline &line, double timeout_s)
    : line_(line), timeout_s_(timeout_s), begin_(line.peer_->now()), pinged_(begin_)
{
}

void lifeline::deadline::check()
{
    if (++rounds_ < kLooks)
        return;
    line_.peer_->rest(rounds_);
    const double now = line_.peer_->now();
    if (now - begin_ > timeout_s_)
        throw error(EPIPE, line_.other() + " has been silent for " +
                               std::to_string(static_cast<int>(timeout_s_)) + " s");
    if (now - pinged_ > kPingEvery) {
        pinged_ = now;
        line_.ping();
    }
}

void lifeline::ping()
{
    require_peer();
    require(peer_->send_and_forget(static_cast<int>(word::ping)), "sending");
}

bool lifeline::is_finished(connection::ticket &request, std::size_t &bytes)
{
    bool done = false;
    require(peer_->test(request, done, bytes), "a transfer");
    return done;
}

void lifeline::send(word what, const std::string &text)
{
    connection::ticket request = connection::kNone;
    auto sent = std::make_unique<std::string>(text);
    require(peer_->start_send(static_cast<int>(what), std::as_bytes(std::span(*sent)), request),
            "sending");
    finish_with(request, sent);
}

void lifeline::send_until_taken(word what)
{
    connection::ticket request = connection::kNone;
    require(peer_->start_send_until_taken(static_cast<int>(what), request), "sending");
    finish(request, [] {});
}

void lifeline::drain(word last, double timeout_s)
{
    auto scrap = std::make_unique<std::vector<std::byte>>();
    for (deadline limit(*this, timeout_s);; limit.check()) {
        std::optional<connection::message> there;
        require(peer_->probe(there), "a probe");
        if (!there)
            continue;
        scrap->resize(there->length);
        connection::ticket request = connection::kNone;
        require(peer_->start_receive(there->kind, *scrap, request), "receiving");
        finish_with(request, scrap);
        if (there->kind == static_cast<int>(last))
            return;
    }
}

std::optional<message> lifeline::poll()
{
    for (;;) {
        std::optional<connection::message> there;
        require(peer_->probe(there), "a probe");
        /* Segments have receives of their own. */
        if (!there || there->kind == static_cast<int>(word::segment))
            return std::nullopt;
        message got{static_cast<word>(there->kind), std::string(there->length, 0)};
        require(peer_->receive(*there, std::as_writable_bytes(std::span(got.text))), "receiving");
        abandoned_ |= got.what == word::abandon;
        if (got.what != word::ping)
            return got;
    }
}

message lifeline::receive(double timeout_s)
{
    for (deadline limit(*this, timeout_s);; limit.check())
        if (auto got = poll())
            return *got;
}

void lifeline::start_segment(std::span<const std::byte> segment, connection::ticket &request)
{
    require(peer_->start_send(static_cast<int>(word::segment), segment, request), "sending");
}

void lifeline::expect_segment(std::span<std::byte> room, connection::ticket &request)
{
    require(peer_->start_receive(static_cast<int>(word::segment), room, request), "receiving");
}

void lifeline::disconnect()
{
    /* Everything that was sent has been received after this, pings too. */
    connection::ticket request = connection::kNone;
    require(peer_->start_synchronising(request), "parting");
    std::size_t bytes = 0;
    /* The program of the other may take its time to rebuild what it has. No ping from here on. */
    for (unsigned rounds = 0; !is_finished(request, bytes); rounds++) {
        if (rounds < kLooks)
            continue;
        require_peer();
        peer_->rest(rounds);
    }
    while (poll())
        continue;
    peer_->close();
}

void lifeline::forget(bool silent)
{
    peer_->forget(silent);
}

} // namespace zc::migrate
