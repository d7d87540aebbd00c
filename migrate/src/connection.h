/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace zc::migrate {

/**
 * What a lifeline needs of the network: messages of several kinds between two processes. They
 * come whole, those of a kind in the order in which they were sent, unless the peer is gone. Where
 * a bool is returned, false means that.
 */
class connection {
  public:
    /** A send or receive that is under way; its memory stays as it is until it is done. */
    using ticket = std::uintptr_t;
    static constexpr ticket kNone = 0;

    struct message {
        int kind;
        std::size_t length;
    };

    virtual ~connection() = default;

    virtual bool start_send(int kind, std::span<const std::byte> bytes, ticket &it) = 0;
    /** An empty one, done when the peer has begun to receive it. */
    virtual bool start_send_until_taken(int kind, ticket &it) = 0;
    /** One that is done when it likes. */
    virtual bool send_and_forget(int kind) = 0;
    virtual bool start_receive(int kind, std::span<std::byte> room, ticket &it) = 0;
    /** Is it? Then @it is kNone, and @bytes what was received. Of kNone: yes. */
    virtual bool test(ticket &it, bool &done, std::size_t &bytes) = 0;
    /** In vain if data is coming. */
    virtual void cancel(ticket it) = 0;
    /** The message that has come and is not received. */
    virtual bool probe(std::optional<message> &there) = 0;
    /** That one; @room has its length. */
    virtual bool receive(const message &there, std::span<std::byte> room) = 0;

    /** Both sides: all that was sent before has come when this is done. */
    virtual bool start_synchronising(ticket &it) = 0;
    /** Both sides: end it. */
    virtual void close() = 0;
    /** The other side has ended. @silent: nothing of it can be under way any more. */
    virtual void forget(bool silent) = 0;

    /** Leaver: what is known of the successor's end from elsewhere, to go on "the successor ...";
     * "" if it has not ended. */
    virtual std::string end_of_peer() { return ""; }
    /** Will end_of_peer() tell of its end? That may take a moment longer than the network does. */
    virtual bool end_is_told() const { return false; }
    /** Leaver: from now on the end of the successor is that of the job. False: it has ended. */
    virtual bool commit() { return true; }
    /** Leaver: not any more, if it has been. */
    virtual void take_back() {}

    /** Let the network do its work. */
    virtual void make_progress() = 0;
    /** Seconds, and a rest of the @rounds-th look in vain. */
    virtual double now() const = 0;
    virtual void rest(unsigned rounds) = 0;
};

} // namespace zc::migrate
