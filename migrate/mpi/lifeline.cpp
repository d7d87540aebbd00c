/* SPDX-License-Identifier: BSD-3-Clause */
#include "lifeline.h"

#include <ctime>
#include <sched.h>
#include <vector>

#include "error.h"
#include "world.h"

namespace zc::migrate {

namespace {

constexpr double kPingEvery = 0.25;

} // namespace

lifeline::lifeline(MPI_Comm between, bool successor, double timeout_s)
    : between_(between), successor_(successor), timeout_s_(timeout_s)
{
    PMPI_Intercomm_merge(between_, successor, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(between_, MPI_ERRORS_RETURN);
}

void lifeline::require(int code, const char *what) const
{
    if (code == MPI_SUCCESS)
        return;
    throw error(EPIPE, std::string(successor_ ? "the predecessor" : "the successor") +
                           " is gone: " + what + " failed");
}

lifeline::deadline::deadline(lifeline &line, double timeout_s)
    : line_(line), timeout_s_(timeout_s), begin_(seconds()), pinged_(begin_)
{
}

void lifeline::deadline::check()
{
    if (++rounds_ < 256)
        return;
    if (rounds_ < 2048) {
        sched_yield();
    } else {
        const timespec span{0, 50'000};
        nanosleep(&span, nullptr);
    }
    const double now = seconds();
    if (now - begin_ > timeout_s_)
        throw error(EPIPE, std::string(line_.successor_ ? "the predecessor" : "the successor") +
                               " has been silent for " +
                               std::to_string(static_cast<int>(timeout_s_)) + " s");
    if (now - pinged_ > kPingEvery) {
        pinged_ = now;
        line_.ping();
    }
}

void lifeline::ping()
{
    MPI_Request request;
    require(MPI_Isend(nullptr, 0, MPI_BYTE, successor_ ? 0 : 1, static_cast<int>(word::ping), comm_,
                      &request),
            "sending");
    MPI_Request_free(&request);
}

bool lifeline::is_finished(MPI_Request &request, std::size_t &bytes)
{
    int done = 0, count = 0;
    MPI_Status status;
    require(MPI_Test(&request, &done, &status), "a transfer");
    if (done)
        MPI_Get_count(&status, MPI_BYTE, &count);
    bytes = count > 0 ? static_cast<std::size_t>(count) : 0;
    return done;
}

void lifeline::send(word what, const std::string &text)
{
    MPI_Request request;
    auto sent = std::make_unique<std::string>(text);
    require(MPI_Isend(sent->data(), static_cast<int>(sent->size()), MPI_BYTE, successor_ ? 0 : 1,
                      static_cast<int>(what), comm_, &request),
            "sending");
    finish_with(request, sent);
}

void lifeline::send_last(word what)
{
    MPI_Request request;
    require(MPI_Issend(nullptr, 0, MPI_BYTE, successor_ ? 0 : 1, static_cast<int>(what), comm_,
                       &request),
            "sending");
    finish(request, [] {});
}

void lifeline::drain(word last, double timeout_s)
{
    auto scrap = std::make_unique<std::vector<std::byte>>();
    for (deadline limit(*this, timeout_s);; limit.check()) {
        int there = 0, length = 0;
        MPI_Status status;
        require(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, &status), "a probe");
        if (!there)
            continue;
        MPI_Get_count(&status, MPI_BYTE, &length);
        scrap->resize(static_cast<std::size_t>(length));
        MPI_Request request;
        require(MPI_Irecv(scrap->data(), length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm_,
                          &request),
                "receiving");
        finish_with(request, scrap);
        if (status.MPI_TAG == static_cast<int>(last))
            return;
    }
}

std::optional<message> lifeline::poll()
{
    for (;;) {
        int there = 0;
        MPI_Status status;
        require(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, &status), "a probe");
        /* Segments have receives of their own. */
        if (!there || status.MPI_TAG == static_cast<int>(word::segment))
            return std::nullopt;
        int length = 0;
        MPI_Get_count(&status, MPI_BYTE, &length);
        message got{static_cast<word>(status.MPI_TAG),
                    std::string(static_cast<std::size_t>(length), 0)};
        require(MPI_Recv(got.text.data(), length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                         comm_, MPI_STATUS_IGNORE),
                "receiving");
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

void lifeline::start_segment(std::span<const std::byte> segment, MPI_Request &request)
{
    require(MPI_Isend(segment.data(), static_cast<int>(segment.size()), MPI_BYTE,
                      successor_ ? 0 : 1, static_cast<int>(word::segment), comm_, &request),
            "sending");
}

void lifeline::expect_segment(std::span<std::byte> room, MPI_Request &request)
{
    require(MPI_Irecv(room.data(), static_cast<int>(room.size()), MPI_BYTE, successor_ ? 0 : 1,
                      static_cast<int>(word::segment), comm_, &request),
            "receiving");
}

void lifeline::disconnect()
{
    /* Everything that was sent has been received after this, pings too. */
    MPI_Barrier(comm_);
    while (poll())
        continue;
    part(comm_);
    part(between_);
}

void lifeline::forget(bool silent)
{
    /* A message that is still to come would be taken for one of the next line, if that were
     * given the same context id. */
    if (silent)
        MPI_Comm_free(&comm_);
    MPI_Comm_free(&between_);
}

} // namespace zc::migrate
