/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_AGENT_CLIENT_H_INCLUDED
#define ZC_CONTROL_AGENT_CLIENT_H_INCLUDED

#include <chrono>
#include <stdexcept>
#include <string>

namespace zc::control {

/** In words for the user. */
class client_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** No process listens there. */
class no_agent : public client_error {
    using client_error::client_error;
};

/** zcmd.sock in $XDG_RUNTIME_DIR/zcm or /tmp/zcm-UID (runtime_directory.h), where there is one. */
std::string default_socket();
/** The text of a page of the agent behind @socket, e.g. "/nodes". @patience: for each step. */
std::string get(const std::string &socket, const std::string &page,
                std::chrono::milliseconds patience = std::chrono::seconds(10));
/** A command without an answer, e.g. "/drain". */
void post(const std::string &socket, const std::string &command);

} // namespace zc::control

#endif
