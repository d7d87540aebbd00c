/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "connection.h"

namespace zc::migrate {

/** What leaver and successor say to each other; each kind is a tag. */
enum class word : int {
    hello = 1, /* leaver: who you are (JSON) */
    here,      /* successor: I have heard it */
    proceed,   /* leaver: go on with the program; at the start of a job: link up */
    abandon,   /* leaver: end yourself, nothing is moved */
    ask,       /* successor: this array, please (JSON) */
    answer,    /* leaver: it comes in so many segments, or lies in this file (JSON) */
    segment,   /* leaver: an image, followed by its checksum */
    ready,     /* successor: all is restored and verified (JSON); the acknowledgement */
    failed,    /* successor: why not (text); it waits to be abandoned */
    left,      /* successor, abandoned: the last that will be heard of it */
    go,        /* leaver: you are the rank now: link up with the others */
    done,      /* successor of rank 0: how the rebuilding went (JSON) */
    ping,      /* either: still there? fails if not, or is not taken */
    list,      /* successor: what is there? */
    listing,   /* leaver: these names, and how many elements of each (JSON) */
};

/** Seconds that a leaver waits for the last word of a successor that it has abandoned. */
inline constexpr double kFarewell = 10;

struct message {
    word what;
    std::string text;
};

/**
 * What leaver and successor say to each other, over a connection. Every wait has an end: throws
 * error(EPIPE) when the peer is gone or silent for longer than the time limit. Owned by one thread.
 */
class lifeline {
  public:
    lifeline(std::unique_ptr<connection> peer, bool successor, double timeout_s)
        : peer_(std::move(peer)), successor_(successor), timeout_s_(timeout_s)
    {
    }
    lifeline(const lifeline &) = delete;
    lifeline &operator=(const lifeline &) = delete;

    connection &peer() const noexcept { return *peer_; }

    void send(word what, const std::string &text = "");
    /** Returns when the peer has taken it: it cannot be lost if this process ends now. */
    void send_until_taken(word what);
    /** The next message, whatever it says; pings are swallowed. */
    message receive() { return receive(timeout_s_); }
    message receive(double timeout_s);
    std::optional<message> poll();
    /** Drop all that comes, segments too, up to a message that says @last. */
    void drain(word last, double timeout_s);
    /** The predecessor has said so. */
    bool is_abandoned() const noexcept { return abandoned_; }

    /** One direction of a stream of segments; @segment must stay as it is until drained. */
    void start_segment(std::span<const std::byte> segment, connection::ticket &request);
    void expect_segment(std::span<std::byte> room, connection::ticket &request);
    /** Bytes that came, if it was a receive. @interrupt: called while waiting, may throw. */
    template <typename Interrupt>
    std::size_t finish(connection::ticket &request, Interrupt interrupt)
    {
        for (deadline limit(*this);; limit.check()) {
            std::size_t bytes = 0;
            if (is_finished(request, bytes))
                return bytes;
            interrupt();
        }
    }

    /** Leaver: the successor is about to be the rank. Throws error if it does not listen. */
    void commit();

    /** Both sides: end the connection in peace. */
    void disconnect();
    /** The other side has ended. @silent: nothing of it can be under way any more. */
    void forget(bool silent);

  private:
    class deadline {
      public:
        deadline(lifeline &line, double timeout_s);
        explicit deadline(lifeline &line) : deadline(line, line.timeout_s_) {}
        void check(); /* also rests, and pings now and then */

      private:
        lifeline &line_;
        double timeout_s_, begin_, pinged_;
        unsigned rounds_ = 0;
    };

    /** Wait for @request. If it has no end, @buffer stays the network's. Throws as finish() does.
     */
    template <typename Buffer>
    std::size_t finish_with(connection::ticket &request, std::unique_ptr<Buffer> &buffer)
    {
        try {
            return finish(request, [] {});
        } catch (...) {
            if (request != connection::kNone)
                static_cast<void>(buffer.release());
            throw;
        }
    }
    bool is_finished(connection::ticket &request, std::size_t &bytes);
    void ping();
    void require(bool succeeded, const char *what) const;
    void require_peer() const;
    std::string other() const { return successor_ ? "the predecessor" : "the successor"; }

    std::unique_ptr<connection> peer_;
    bool successor_;
    bool abandoned_ = false;
    double timeout_s_;
};

} // namespace zc::migrate
