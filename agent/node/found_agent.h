/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_FOUND_AGENT_H_INCLUDED
#define ZC_AGENT_FOUND_AGENT_H_INCLUDED

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config.h"
#include "keys.h"

namespace zc::agent {

/** It answers no more, or cannot be used. */
class found_agent_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/**
 * What an agent that was started by @c may have, complete: one for each place where its status
 * socket may be, as it may have been started with another environment than ours.
 */
std::vector<config> may_have(const config &c);

/**
 * An agent of this user that runs on this node already, whoever has started it. It is asked for
 * what it tells anybody of this user, and never told to do anything.
 */
class found_agent {
  public:
    /** With the watch of one that was found. */
    struct patience {
        std::chrono::milliseconds answer = std::chrono::seconds(3); /* for each */
        std::chrono::milliseconds silence =
            std::chrono::seconds(60); /* then it is taken for dead */
    };
    /** nullopt: none listens at the status socket of @c. Throws found_agent_error or key_error. */
    static std::optional<found_agent> find(const config &c, const patience &with);
    static std::optional<found_agent> find(const config &c) { return find(c, patience()); }

    const std::string &address() const { return address_; }
    const std::string &mode() const { return mode_; }
    const key_pair &keys() const { return keys_; }

    /** Of @addresses, how many it knows to be alive, itself included. nullopt: it has not said so
     * in time, as a busy one may not. Throws found_agent_error if it has ended, or is silent for
     * long.
     */
    std::optional<std::size_t> alive_of(const std::vector<std::string> &addresses);

  private:
    using clock = std::chrono::steady_clock;
    found_agent(std::string socket, const patience &with)
        : patience_(with), socket_(std::move(socket))
    {
    }

    patience patience_;
    clock::time_point answered_ = clock::now(); /* last */
    std::string socket_, address_, mode_;
    key_pair keys_;
};

} // namespace zc::agent

#endif
