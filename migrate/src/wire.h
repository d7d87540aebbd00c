/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <vector>

namespace zc::migrate {

/**
 * A stream socket over which objects of JSON travel, one a line: between a rank and zcm-launch. Its
 * owner's, but for shut_down(). Nothing here waits for the other side to say something.
 */
class wire {
    static constexpr std::size_t kLongest = 16 << 20;

  public:
    /** Takes over @fd. */
    explicit wire(int fd);
    ~wire();
    wire(const wire &) = delete;
    wire &operator=(const wire &) = delete;

    int fd() const noexcept { return fd_; }
    /** False: the other side is gone. */
    bool send(const nlohmann::json &object);
    /** The next object that has come; nothing if none has. What is no object, or is longer than the
     * limit, closes the wire. */
    std::optional<nlohmann::json> poll();
    /** The most bytes of an object: 16 MiB if this is not called. */
    void limit(std::size_t bytes = kLongest) noexcept { longest_ = bytes; }
    /** Nothing more will come. */
    bool is_closed() const noexcept { return closed_; }
    /** Any thread: both sides find it closed. */
    void shut_down() const noexcept;

  private:
    int fd_;
    bool closed_ = false;
    std::size_t longest_ = kLongest;
    std::string read_; /* not a whole line yet */
};

/** How a process can be called: a secret that the caller has to know, and the addresses to try. */
struct calling_card {
    std::string key;
    std::vector<std::string> addresses; /* ADDRESS/PORT */

    /** Without blanks, quotes and equals signs, as the process manager wants it; with as many
     * addresses as fit in @longest characters, one at least. */
    std::string to_text(std::size_t longest = std::string::npos) const;
    /** Throws error(EBADMSG). */
    static calling_card from_text(const std::string &text);
    /** Nothing where @text has none. */
    static std::optional<calling_card> if_any(const std::string &text) noexcept;
};

/** The places of @card that may be called from a host with the
 * addresses @own. */
std::vector<std::string> places_to_call(const calling_card &card, const std::set<std::string> &own);

/** Waits for calls over TCP on all addresses of this host. Throws error where it cannot. */
class call_receiver {
  public:
    call_receiver();
    ~call_receiver();
    call_receiver(const call_receiver &) = delete;
    call_receiver &operator=(const call_receiver &) = delete;

    const calling_card &card() const noexcept { return card_; }
    /** The wire to a process that has called and shown the key, with @why it calls; nullptr if none
     * has yet. Whatever others send closes their wires, and is not longer than 4 KiB. */
    std::unique_ptr<wire> poll(std::string &why);
    /** Adds what poll(2) has to wait for until the next poll() may have something. Returns for how
     * long at most, ms; -1: for ever. */
    int watch(std::vector<pollfd> &events) const;

  private:
    using clock = std::chrono::steady_clock;
    struct unproven { /* the key has not been shown on it */
        std::unique_ptr<wire> line;
        clock::time_point until; /* then it is closed */
    };
    void accept_callers();

    int listener_ = -1;
    calling_card card_;
    std::vector<unproven> unproven_;
    clock::time_point rests_until_; /* no caller is accepted: this process has no descriptors */
};

/** Calls, and says @why. Where @card is not of this host, addresses that this one has, too, are not
 * called: another user's process could be there, and be told the key. Throws error if nobody is
 * there within @timeout_s. */
std::unique_ptr<wire> call(const calling_card &card, const std::string &why, double timeout_s);

} // namespace zc::migrate
