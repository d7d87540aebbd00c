/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_FOUND_AGENT_H_INCLUDED
#define ZC_AGENT_FOUND_AGENT_H_INCLUDED

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
 * An agent of this user that runs on this node already, whoever has started it. It is asked for
 * what it tells anybody of this user, and never told to do anything.
 */
class found_agent {
  public:
    /** nullopt: none listens at the status socket of @c. Throws found_agent_error or key_error. */
    static std::optional<found_agent> find(const config &c);

    const std::string &address() const { return address_; }
    const std::string &mode() const { return mode_; }
    const key_pair &keys() const { return keys_; }

    /** Of @addresses, how many it knows to be alive, itself included. Throws found_agent_error. */
    std::size_t alive_of(const std::vector<std::string> &addresses) const;

  private:
    explicit found_agent(std::string socket) : socket_(std::move(socket)) {}

    std::string socket_, address_, mode_;
    key_pair keys_;
};

} // namespace zc::agent

#endif
